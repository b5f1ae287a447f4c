"""A small corpus of our own: short texts on three subjects."""

from sklearn.feature_extraction.text import CountVectorizer

SUBJECTS = {
    "garden": (
        "soil seed water plant root leaf garden",
        "The garden needs water, and the soil needs compost; plant the seed when the soil is warm.",
        "A leaf turns yellow when the root finds no water in the soil of the garden.",
        "Plant beans after the frost, water every seed, and cover the root with soil.",
        "Rain is water for free: dig the soil, plant a row, and the garden feeds you.",
        "Every leaf, every root and every seed in this garden came from one plant.",
        "Compost makes the soil dark; a plant in dark soil has a strong root.",
        "Pull the weed with its root, or the garden will grow weed after weed.",
    ),
    "sea": (
        "sail wind harbour wave ship captain rope",
        "The captain set sail with a fair wind, and the ship left the harbour before dawn.",
        "A wave broke over the ship; the captain tied the rope and took the sail down.",
        "Without wind no sail will move a ship, so the captain waited in the harbour.",
        "The rope held, the wind turned, and wave after wave carried the ship home.",
        "In the harbour the captain sold the ship, the sail and every rope on it.",
        "Storm wind tears a sail; a wise captain keeps a spare rope and a quiet harbour.",
        "The ship lay at anchor while the wave and the wind argued about the harbour.",
    ),
    "kitchen": (
        "bread oven flour salt dough butter knife",
        "Mix flour and salt with water, knead the dough, and bake the bread in a hot oven.",
        "Butter the bread while the oven is hot, and cut it with a sharp knife.",
        "The dough needs time: flour, water and salt become bread only after a night.",
        "A cold oven ruins bread; a blunt knife ruins butter; too much salt ruins dough.",
        "Spread flour on the table, roll the dough, and fold the butter into it.",
        "The knife lies beside the oven, the butter beside the bread, the salt beside the flour.",
        "Salt the dough late, or the flour will not take the water and the bread stays flat.",
    ),
}
TEXTS = tuple(text for texts in SUBJECTS.values() for text in texts)
VECTORIZER = CountVectorizer(stop_words="english", min_df=2)
COUNTS = VECTORIZER.fit_transform(TEXTS)
WORDS = tuple(str(word) for word in VECTORIZER.get_feature_names_out())
