"""The HTML of reports, as jinja2 templates."""

STYLE = """\
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; }
h1 { font-size: 1.7rem; margin-bottom: .4rem; }
h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid #888; }
td.figure, th.figure { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
figure { margin: 1rem 0; }
figure img { max-width: 100%; }
figcaption { font-size: .9rem; color: #555; }
code { background: #f2f2f2; padding: .1rem .3rem; }
.violated { font-weight: 600; }
"""

_HEAD = (
    """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
"""
    + STYLE
)

_ANSWER = (
    _HEAD
    + """\
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p>{{ badge | safe }}</p>
<p><strong>Proved.</strong> {{ proved }}</p>
<p><strong>Not proved.</strong> {{ not_proved }}</p>
<h2>Answer</h2>
<table id="answer">
{% for name, value in answer %}
<tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
</table>
<h2>Problem</h2>
<table id="problem">
{% for name, value in facts %}
<tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
</table>
"""
)

_CLUSTERS = """\
<h2>Clusters</h2>
<div class="wide">
<table id="clusters">
<thead><tr><th>cluster</th><th class="figure">points</th><th class="figure">weight</th>
{% for name in feature_names %}
<th class="figure">mean {{ name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in clusters %}
<tr><td>{{ row.cluster }}</td><td class="figure">{{ row.size }}</td>
<td class="figure">{{ "%.4f" | format(row.weight) }}</td>
{% for mean in row.mean %}
<td class="figure">{{ "%.4g" | format(mean) }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
<figure>
<img id="scatter" src="{{ scatter }}" alt="Clusters over pairs of features">
<figcaption>{{ scatter_note }}</figcaption>
</figure>
"""

_RANKING = """\
{% if ranking is not none %}
<h2>Best clusterings</h2>
{% if ranking %}
<table id="ranking">
<thead><tr><th>rank</th><th class="figure">log-posterior</th><th class="figure">below the best</th>
<th class="figure">density relative to the best</th><th class="figure">points in other clusters</th></tr></thead>
<tbody>
{% for row in ranking %}
<tr><td>{{ row.rank }}</td><td class="figure">{{ "%.10g" | format(row.log_map) }}</td>
<td class="figure">{{ "%.6f" | format(row.difference) }}</td><td class="figure">{{ "%.3g" | format(row.odds) }}</td>
<td class="figure">{{ row.moved }}</td></tr>
{% endfor %}
</tbody>
</table>
{% endif %}
<p>{{ ranking_summary }}</p>
{% endif %}
"""

_TOPICS = """\
<h2>Topics</h2>
<div class="wide">
<table id="topics">
<thead><tr><th>topic</th><th class="figure">tokens</th><th class="figure">documents</th>
<th>most probable words</th></tr></thead>
<tbody>
{% for row in topics %}
<tr><td>{{ row.topic }}</td><td class="figure">{{ row.tokens }}</td><td class="figure">{{ row.documents }}</td>
<td>{{ row.words | join(", ") or "empty" }}</td></tr>
{% endfor %}
</tbody>
</table>
</div>
"""

_PROOF = """\
<h2>Constraints</h2>
{% if checks %}
<p>{{ constraint_summary }}.</p>
<table id="constraints">
<thead><tr><th>kind</th><th>of</th><th>satisfied</th></tr></thead>
<tbody>
{% for check in checks %}
<tr{% if not check.satisfied %} class="violated"{% endif %}>
<td>{{ check.kind }}</td><td>{{ check.subject }}</td><td>{{ "yes" if check.satisfied else "no" }}</td></tr>
{% endfor %}
</tbody>
</table>
{% if hidden_checks %}
<p>and {{ hidden_checks }} more; violated ones come first.</p>
{% endif %}
{% else %}
<p>None.</p>
{% endif %}
<h2>Convergence</h2>
<figure>
<img id="convergence" src="{{ convergence }}" alt="Best value and upper bound over time">
</figure>
<h2>Certificate</h2>
{% if certificate %}
<p>The proof of the upper bound can be checked by code that shares nothing with the solver:
<code>{{ certificate }}</code></p>
{% else %}
<p>No proof was saved with this report.</p>
{% endif %}
<h2>To reproduce</h2>
<table id="reproduce">
{% for name, value in reproduce %}
<tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
</table>
</body>
</html>
"""

CLUSTERING = _ANSWER + _CLUSTERS + _RANKING + _PROOF
TOPICS = _ANSWER + _TOPICS + _PROOF

DOCUMENT = (
    _HEAD
    + """\
body { max-width: 74rem; }
tbody th { white-space: nowrap; }
caption { text-align: left; font-size: .9rem; color: #444; padding-bottom: .3rem; }
table { margin: 1rem 0; }
tbody tr:nth-child(odd) { background: #f6f6f6; }
th, td { padding: .2rem 0 .2rem 1.4rem; }
th:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: .9rem; }
td.figure { white-space: nowrap; }
th.printed, td.printed { color: #555; font-style: italic; font-weight: normal; padding-left: .5rem; }
td.printed { white-space: nowrap; font-variant-numeric: tabular-nums; }
.remark { border-left: .25rem solid #888; padding-left: .8rem; color: #333; }
nav { columns: 2; font-size: .95rem; }
nav a { color: #0b4f8a; }
</style>
</head>
<body>
<h1>{{ document.title }}</h1>
{% for paragraph in document.lead %}
<p>{{ paragraph | prose }}</p>
{% endfor %}
<nav aria-label="Contents">
{% for section in document.sections %}
<a href="#{{ section.id }}">{{ section.title }}</a><br>
{% endfor %}
</nav>
{% for section in document.sections %}
<h2 id="{{ section.id }}">{{ section.title }}</h2>
{% for paragraph in section.paragraphs %}
<p>{{ paragraph | prose }}</p>
{% endfor %}
{% for part in section.parts %}
{% if part is picture %}
<figure>
<img id="{{ part.id }}" src="{{ part.png | embedded }}" alt="{{ part.text }}">
<figcaption>{{ part.caption }}</figcaption>
</figure>
{% else %}
{% set layout = part.layout() %}
<div class="wide">
<table id="{{ part.id }}">
<caption>{{ part.caption }}</caption>
<thead><tr>
{% for column in layout %}
<th{% if column.figures and not loop.first %} class="figure"{% endif %}>{{ column.head }}</th>
{% if column.printed %}<th class="printed">[paper]</th>{% endif %}
{% endfor %}
</tr></thead>
<tbody>
{% for row in part.cells() %}
<tr>
{% for cell in row %}
{% set column = layout[loop.index0] %}
{% if loop.first %}
<th scope="row">{{ cell.text }}</th>
{% else %}
<td{% if column.figures %} class="figure"{% endif %}>
{{- "<strong>" | safe if cell.strong }}{{ cell.text }}{{ "</strong>" | safe if cell.strong }}</td>
{% if column.printed %}<td class="printed">{{ cell.printed }}</td>{% endif %}
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% endif %}
{% endfor %}
{% for remark in section.remarks %}
<p class="remark">{{ remark | prose }}</p>
{% endfor %}
{% if section.files %}
<p>Numbers:
{% for file in section.files %}
<code>{{ file.name }}</code>{{ "" if loop.last else ", " }}
{% endfor %}
</p>
{% endif %}
{% endfor %}
<h2 id="reproduce-heading">To reproduce</h2>
<table id="reproduce">
<tbody>
{% for name, value in document.facts %}
<tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
</tbody>
</table>
</body>
</html>
"""
)
