"""Papers and their claims: a paper is a folder beside this file that holds a ``claims.toml``, and every claim is judged by code.

Such a folder, say ``do2009``, has

- ``claims.toml``: title, reference, the whole paper's claim in words (``says``), the names of its exhibits in the order of the report,
  the least scale that its runs make sense at, the kinds and translation layers of the drives that they use, how long it takes, which
  exhibits are experiments, long texts of the report, the parameters that were chosen with published numbers in view, and every claim with
  its published values;
- a module an exhibit (a table or figure) that follows `Exhibit`; or one module of several, ``figures:selectivity``, which holds them by
  name in ``EXHIBITS``, most of them made of data by `Shown` and `Judged`.  An exhibit may judge no claim: then it belongs to the report of
  the whole paper, or, if it is an experiment of many runs (a sensitivity, a stated variant, a cause), is run by its name.

Which limits and definitions changed after they were first written stands in ``changes.toml``.

What papers share stands in `runs` (joins, and runs made once and kept), `formulas` and `presentation` of `flashsim.experiments`.  The types
that every exhibit is written in can be imported from here.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Protocol, get_args, get_origin, get_type_hints

from flashsim.core.compiling import Part
from flashsim.core.errors import DamagedFileError, FlashsimError, UnknownNameError
from flashsim.core.members import Family, optional
from flashsim.experiments.judging.cells import NULLS, Cell
from flashsim.experiments.judging.claims import ChosenParameter, Claim, Judgement
from flashsim.experiments.presentation.report import Section
from flashsim.experiments.presentation.tables import Entry, Table
from flashsim.experiments.runs.jobs import KINDS, Job, Results, Settings

__all__ = ["PAPERS", "Cell", "Claim", "Entry", "Exhibit", "Job", "Judged", "Paper", "Results", "Runs", "Section", "Settings", "Shown"]
__all__ += ["Table", "load", "select_papers"]


class Exhibit(Protocol):
    """A module of a paper that makes one of its tables or figures."""

    #: Under which the report says that the exhibit is not run: an experiment, or below its scale of ``least_scales`` of the claims.
    TITLE: str = ""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        """The runs that it needs for claims with these ids."""

    @optional
    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        """The cells of one of its claims; the values of runs that are missing are None."""
        raise FlashsimError(f"claim {claim.name}: its exhibit {claim.exhibit} judges no claims")

    @optional
    def sections(self, results: Results) -> list[Section]:
        """Sections of the report beside the claims' cells; runs may be missing that only other claims need, or that failed."""
        return []


class Runs:
    """Results of a paper's runs by setup, the parameters of a run; `job` makes the run of it."""

    job: Callable[[Any, Settings], Job] = staticmethod(lambda setup, settings: setup.job(settings))

    def __init__(self, results: Results) -> None:
        self.results, self.settings = results, results.settings

    def get(self, setup: Any) -> Any:
        """The result of a run; None where it was not asked for."""
        return self.results.get(self.job(setup, self.settings))

    def id(self, setup: Any) -> str:
        """The id of a run."""
        return self.job(setup, self.settings).id


@dataclass(frozen=True)
class Shown(Exhibit):
    """An exhibit as data: the setups of its runs, or those of each claim, and what the report shows of the runs."""

    setups: Sequence[Any] | Mapping[str, Sequence[Any]]
    show: Callable[[Any], list[Section]] = lambda runs: []
    TITLE: str = ""
    runs: type[Runs] = Runs

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        setups = self.setups
        if isinstance(setups, Mapping):
            setups = [setup for claim, own in setups.items() if claim in claims for setup in own]
        return [self.runs.job(setup, settings) for setup in setups]

    def sections(self, results: Results) -> list[Section]:
        return self.show(self.runs(results))


@dataclass(frozen=True)
class Judged(Shown):
    """Such an exhibit that judges claims, by functions that make a claim's cells of runs."""

    judges: Mapping[str, Callable[[Claim, Any], list[Cell]]] = field(default_factory=dict)

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        return self.judges[claim.id](claim, self.runs(results))


@dataclass(frozen=True)
class Paper:
    """A paper and what it claims."""

    name: str
    #: Its folder.
    family: Family[Exhibit]
    title: str
    reference: str
    #: By exhibit, in the order of the report, the module of the folder that holds the exhibit among others, if one does.
    exhibits: Mapping[str, str]
    claims: Sequence[Claim]
    least_scale: float = 0.0
    least_scales: Mapping[str, float] = field(default_factory=dict)
    #: Exhibits that judge no claim, and are run when they are named or asked for.
    experiments: Sequence[str] = ()
    #: Of the drives, extensions of memory and replacement in the runs: they are compiled before.
    translation_layers: Sequence[str] = ()
    kinds: Sequence[str] = KINDS
    designs: Sequence[str] = ()
    policies: Sequence[str] = ()
    #: How long it takes, in words.
    takes: str = ""
    #: The claim of the whole paper, in words that follow "The paper claims that".
    says: str = ""
    #: What the scale multiplies, in words, if not what `flashsim.experiments.runs.jobs.Settings.devices` says.
    scaled: str = ""
    #: Texts of the report by name.
    texts: Mapping[str, str] = field(default_factory=dict)

    def claim(self, claim_id: str) -> Claim:
        """The claim of that id."""
        return next(claim for claim in self.claims if claim.id == claim_id)

    def text(self, name: str, **values: Any) -> str:
        """A text of the report with values in its places; refused is one that the claims' file lacks, or that has other places."""
        try:
            return self.texts[name].format(**values)
        except (LookupError, ValueError) as problem:
            raise DamagedFileError(f"{self.name}/claims.toml: text '{name}': {problem!r}") from problem

    def exhibit(self, name: str) -> Exhibit:
        """One of the paper's exhibits."""
        if not (module := self.exhibits[name]):
            return self.family.load(name.replace("_", "-"))
        path = f"{self.family.package}.{module}"
        exhibits: Mapping[str, Exhibit] = import_module(path).EXHIBITS if find_spec(path) else {}
        if name not in exhibits:
            raise DamagedFileError(f"{self.name}/claims.toml: there is no exhibit '{module}:{name}'")
        return exhibits[name]

    def judge(self, claim: Claim, results: Results) -> Judgement:
        """The verdict on a claim; one without an exhibit is not attempted."""
        if claim.exhibit is None:
            return Judgement(claim)
        solved = [parameter for parameter in claim.rests_on if claim.id in parameter.solved_from]
        cells = self.exhibit(claim.exhibit).cells(claim, results)
        return Judgement(
            claim, [replace(cell, calibrates=any(each.is_solved_from(claim.id, cell.name) for each in solved)) for cell in cells]
        )

    def scale_in_words(self, settings: Settings) -> str:
        """The scale, and what it does."""
        return f"scale {settings.scale:g} ({self.scaled})" if self.scaled else settings.scale_in_words

    def parts(self) -> list[Part]:
        """Members of families that the runs compile beside engines."""
        from algorithms.extensions.base import design_parts
        from algorithms.replacement.base import replacement_parts

        return [*replacement_parts(self.policies), *design_parts(self.designs)]

    def is_run(self, exhibit: str, scale: float) -> bool:
        """True if an exhibit is run at a scale."""
        return scale >= self.least_scales.get(exhibit, 0.0)


class PaperFolder(Protocol):
    """A paper's package; all that it has to say stands in ``claims.toml`` beside its ``__init__.py``."""

    __name__: str
    __file__: str


PAPERS = Family("flashsim.apps.papers", "paper", PaperFolder, holds="claims.toml")


def load(name: str) -> Paper:
    """The paper of that name; refused are unknown names, and claims that are no TOML or lack what every paper or claim says."""
    folder = PAPERS.load(name)
    path = Path(folder.__file__).parent / "claims.toml"
    exhibits = Family(folder.__name__, f"exhibit of {name}", Exhibit)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        parameters = {each: ChosenParameter(each, entry["how"], entry["from"]) for each, entry in document.get("parameters", {}).items()}
        entries = document["claims"]  # by id, or with their ids
        if isinstance(entries, dict):
            entries = [{"id": id, **entry} for id, entry in entries.items()]
        changed = tomllib.loads(Path(__file__).with_name("changes.toml").read_text(encoding="utf-8"))["changes"]
        claims = [_claim(name, entry, parameters, changed) for entry in entries]
        modules = {each.rpartition(":")[2]: each.rpartition(":")[0] for each in document["exhibits"]}
        said = {key: document[key] for key in ("title", "reference")} | _read_fields(Paper, document, {"exhibits", "claims"})
        paper = Paper(**said | {"name": name, "family": exhibits, "exhibits": modules, "claims": claims})
    except KeyError as missing:
        raise DamagedFileError(f"{path}: {missing} is missing") from missing
    except (ValueError, TypeError, AttributeError) as problem:  # no TOML, no UTF-8, or a value of another kind
        raise DamagedFileError(f"{path}: {problem}") from problem
    unknown = [f"'{each.exhibit}' of claim {each.id}" for each in claims if each.exhibit not in (None, *modules)]
    unknown += [f"'{each}' of the experiments" for each in paper.experiments if each not in modules]
    if unknown:
        raise DamagedFileError(f"{path}: exhibit {unknown[0]} is not one of its exhibits")
    return paper


def _read_fields(kind: type[Any], entry: Mapping[str, Any], other: Collection[str]) -> dict[str, Any]:
    """Fields of a paper or claim that its entry in the file has, by name, but for some others; values of another kind are refused."""
    hints = get_type_hints(kind)
    said = {name: entry[name] for name in hints if name in entry and name not in other}
    for name, value in said.items():
        if not _is(value, hints[name]):
            raise TypeError(f"{name} = {value!r} is not of the required kind")
    return said


def _is(value: object, hint: Any) -> bool:
    """True if a value of a TOML file is of a field's kind."""
    parts = get_args(hint)
    match value:
        case dict():
            return get_origin(hint) is Mapping and all(_is(each, parts[1]) for each in value.values())
        case list():
            return hint is Any or (get_origin(hint) is Sequence and all(_is(each, parts[0]) for each in value))
        case _:
            kinds = parts if isinstance(hint, UnionType) else (hint,)
            return hint is Any or type(value) in kinds or (hint is float and type(value) is int)


class _ClaimRows(dict[str, Any]):
    """Limits or published values of a claim; one that the claims' file lacks is refused where it is asked for."""

    def __init__(self, rows: Mapping[str, Any], claim: str, kind: str) -> None:
        super().__init__(rows)
        self.place = f"claim {claim}: {kind}"

    def __missing__(self, name: str) -> Any:
        raise DamagedFileError(f"{self.place}: '{name}' is missing")


def _claim(paper: str, entry: Mapping[str, Any], parameters: Mapping[str, ChosenParameter], changed: Sequence[Mapping[str, Any]]) -> Claim:
    said = {key: entry[key] for key in ("id", "title", "source", "tolerance")} | _read_fields(Claim, entry, {"rests_on"})
    if said.get("null", NULLS[0]) not in NULLS:
        raise ValueError(f"claim {entry['id']}: null = '{said['null']}' is none of {', '.join(NULLS)}")
    said |= {"paper": paper, "rests_on": [parameters[name] for name in entry.get("rests_on", ())], "values": entry}
    said |= {key: _ClaimRows(said.get(key, {}), claim=f"{paper}/{entry['id']}", kind=key) for key in ("limits", "published")}
    if "cause" in entry:
        said.setdefault("experiment", entry["exhibit"])
    name = f"{paper}/{entry['id']}"
    changes = [{key: text for key, text in each.items() if key != "claims"} for each in changed if name in each["claims"]]
    return Claim(**said | {"changes": changes})


def select_papers(target: str | None) -> list[tuple[Paper, list[Claim], list[str]]]:
    """The papers, claims and exhibits that ``PAPER``, ``PAPER/CLAIM``, ``PAPER/EXHIBIT`` or nothing (all) stands for.

    Several claims and exhibits of one paper are separated by commas: ``PAPER/NAME,NAME``; unknown names are refused.
    """
    if target is None:
        return [part for name in PAPERS.names() for part in select_papers(name)]
    paper_name, slash, text = target.partition("/")
    paper = load(paper_name)
    if not slash:
        return [(paper, list(paper.claims), list(paper.exhibits))]
    ids = [each.id for each in paper.claims]
    names, known = text.split(","), dict.fromkeys([*ids, *paper.exhibits])
    for name in names:
        if name not in known:
            raise UnknownNameError(f"claim or exhibit of {paper_name}", name, list(known))
    claims = [each for each in paper.claims if each.id in names or (each.exhibit in names and each.exhibit not in ids)]
    judging = {each.exhibit for each in claims}
    return [(paper, claims, [exhibit for exhibit in paper.exhibits if exhibit in judging or exhibit in names])]
