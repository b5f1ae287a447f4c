"""Topics of short texts with seed words and links, with a bound on every other assignment that is verified again."""

from sklearn.feature_extraction.text import CountVectorizer

from certimap import LatentDirichletMAP, verify

TEXTS = (
    "the ship left the harbour with a fair wind",
    "wind tears a sail, and a ship without a sail stays in the harbour",
    "a captain waits in the harbour for wind",
    "bread needs flour, salt and a hot oven",
    "salt the flour before the bread goes to the oven",
    "a captain eats bread without salt",
)


def main() -> None:
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    counts = vectorizer.fit_transform(TEXTS)
    model = LatentDirichletMAP(2, random_state=0)
    model.fit(
        counts,
        vocabulary=vectorizer.get_feature_names_out(),
        seed_words={0: ["harbour"], 1: ["bread"]},
        cannot_link_words=[("wind", "salt")],
    )
    print(model.status_.name, f"value {model.log_map_:.6f}, bound {model.upper_bound_:.6f}")
    for topic, words in enumerate(model.top_words(n=4)):
        print(f"topic {topic}:", ", ".join(words))
    print("verified upper bound:", f"{verify(model.certificate_, model.model()).upper_bound:.6f}")


if __name__ == "__main__":
    main()
