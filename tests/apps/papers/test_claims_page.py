"""The page of all claims says of each what its paper's list says, and the verdict that a run at the published size gives.

After a run that gives other verdicts, ``pytest tests/apps/papers/test_claims_page.py -m deep --renew`` writes the page anew.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from flashsim.apps.papers import base as papers
from flashsim.command_line import app
from tests.cases import with_each

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "claims.md"
#: Published numbers beside ours, of which the pages of papers have pictures.
NUMBERS = PAGE.with_suffix(".csv")
NAMES = papers.PAPERS.names()
HEAD = """# All claims

Every claim of the four reproduced papers, with its verdict from `flashsim reproduce` at the published size.
[Verdicts](../explanation/verdicts.md) explains the verdicts and the null model.

```sh
flashsim reproduce do2009/table4 --details
```

This shows the details of a row: limits, causes and runs. {download}`claims.csv <claims.csv>` has every
published number beside ours.
"""
COLUMNS = "| claim | verdict | published numbers inside | place in the paper | statement |\n|---|---|---|---|---|\n"


def section(result: dict[str, Any]) -> str:
    """The part of the page on a paper, from what ``--json`` wrote."""
    (name,), (sentence,) = result["papers"], result["sentences"]
    head = f"## {name}\n\n{sentence} [More](../explanation/{name}.md).\n\n{COLUMNS}"
    rows = []
    for claim in result["claims"]:
        inside = f"{claim['inside']} of {claim['published_cells']}" if claim["published_cells"] else "-"
        words = (claim["id"].split("/")[1], claim["verdict"], inside, claim["source"], claim["title"])
        rows.append("| " + " | ".join(word.replace("|", "\\|") for word in words) + " |\n")
    return head + "".join(rows)


def numbers(result: dict[str, Any]) -> pd.DataFrame:
    """A row a published number, ours beside it to four digits; a limit is a share of it, or so many points."""
    cells = [
        {"paper": result["papers"][0], "claim": claim["id"].split("/")[1], **cell, "measured": float(f"{cell['measured']:.4g}")}
        for claim in result["claims"]
        for cell in claim["cells"]
        if not cell["variant"] and isinstance(cell["published"], int | float) and isinstance(cell["measured"], int | float)
    ]
    columns = {"name": "cell", "measured": "ours"}
    kept = ["paper", "claim", "cell", "published", "ours", "limit", "points", "inside", "counts"]
    return pd.DataFrame(cells).rename(columns=columns)[kept]


def rows(paper: str) -> list[list[str]]:
    """Rows of the page on a paper, under the head of its table."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {paper}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("| ")][1:]
    return [[cell.replace("\\|", "|") for cell in re.split(r"(?<!\\) \| ", line)] for line in lines]


@with_each("paper", NAMES)
def test_it_has_every_claim_in_order_with_its_words(paper: str) -> None:
    claims = papers.load(paper).claims
    assert [(row[0], row[3], row[4]) for row in rows(paper)] == [(claim.id.split("/")[-1], claim.source, claim.title) for claim in claims]


@with_each("paper", NAMES)
def test_the_sentence_counts_the_rows(paper: str) -> None:
    text, verdicts = PAGE.read_text(encoding="utf-8"), Counter(row[1] for row in rows(paper))
    sentence = re.search(rf"^{paper} at the published size: of (\d+) claims (.*?);", text, re.MULTILINE)
    assert sentence and int(sentence[1]) == verdicts.total()
    assert {verdict: int(count) for count, verdict in re.findall(r"(\d+) ([a-z ]+)", sentence[2])} == verdicts


def test_the_table_of_verdicts_has_the_same_totals() -> None:
    text, page = (PAGE.parents[1] / "explanation" / "verdicts.md").read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8")
    totals = Counter[str]()
    for paper in NAMES:
        tail = r"published numbers inside \(best predictor without a simulation: (\d+)\)\."
        words = re.search(rf"^{paper} at the published size: of \d+ claims (.*?); (.*?) {tail}", page, re.M)
        assert words
        counts = Counter({kind: int(count) for count, kind in re.findall(r"(\d+) ([a-z ]+)", words[1])})
        (row,) = re.findall(rf"^\| {paper} \| ([\d |]+ of [\d |]+) \|$", text, re.M)
        kinds = ("reproduced", "fitted", "consistent", "differs", "not attempted")
        assert [cell.strip() for cell in row.split("|")] == [*(str(counts[kind] or "") for kind in kinds), words[2], words[3]]
        inside, _, published = words[2].split()
        totals += counts + Counter({"inside": int(inside), "published": int(published), "null": int(words[3])})
    (numbers,) = re.findall(r"^Of \d+ claims .* published numbers .*$", text, re.M)
    sentence = "Of {} claims {reproduced} are reproduced, {fitted} fitted and {consistent} consistent, and {differs} differ."
    sentence += " Of {published} published numbers from which no parameter was solved, {inside} are inside, and {null} in null models."
    judged = sum(totals[kind] for kind in ("reproduced", "fitted", "consistent", "differs", "not attempted"))
    assert numbers == sentence.format(judged, **totals)


@with_each("paper", NAMES)
def test_the_table_has_the_published_numbers_that_the_page_counts(paper: str) -> None:
    """Some numbers have two rows, since two of ours are held against them."""
    table = pd.read_csv(NUMBERS).query("paper == @paper and counts")
    counted = {row[0]: tuple(map(int, row[2].split(" of "))) for row in rows(paper) if row[2] != "-"}
    assert set(table["claim"]) == set(counted)
    for claim, (inside, published) in counted.items():
        cells = table[table["claim"] == claim]
        assert len(cells) >= published and cells["inside"].sum() >= inside
        assert len(cells) > published or cells["inside"].sum() == inside


@pytest.mark.deep
@pytest.mark.timeout(7200)
def test_it_says_what_runs_at_the_published_size_say(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    results = []
    for paper in NAMES:
        file = tmp_path / f"{paper}.json"
        assert CliRunner().invoke(app, ["reproduce", paper, "--json", str(file)]).exit_code == 0
        results.append(json.loads(file.read_text(encoding="utf-8")))
    whole, table = "\n".join([HEAD, *map(section, results)]), pd.concat(map(numbers, results)).to_csv(index=False)
    if request.config.getoption("--renew"):
        PAGE.write_text(whole, encoding="utf-8")
        NUMBERS.write_text(table, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == whole
    assert NUMBERS.read_text(encoding="utf-8") == table
