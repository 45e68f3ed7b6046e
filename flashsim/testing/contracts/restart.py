"""The contract of restart designs: whatever survives a crash, recovery finds what was committed and nothing else."""

from typing import Any

from algorithms.restart.base import RESTARTS
from flashsim.storage.log.durable import PAGES, Write
from flashsim.studies.crashing.histories import drawn_history
from flashsim.studies.crashing.injection import CrashReport, Injection, exhaustive, without_ssd
from flashsim.testing.contract import Contract


def safe(name: str, histories: int, seed: int = 0, **options: Any) -> CrashReport:
    """The crashes of some histories, of which none loses or resurrects data."""
    report = exhaustive(name, histories, seed, limit=5.0, **options)
    for violation in report.violations:
        raise AssertionError(f"a crash after event {violation.event} of history {violation.history.seed}: {violation.problems}")
    return report


class RestartContract(Contract):
    """Properties of a restart design (`algorithms.restart.base`)."""

    FAMILY, STEPWISE = RESTARTS, True

    def test_no_crash_loses_or_resurrects_data(self) -> None:
        """A history of each extension and kind of checkpoints: thousands of crash points, many of them in recovery or after restarts."""
        report = safe(self.name, 6)
        assert report.points > 2000 and report.in_recovery > 500

    def test_no_crash_loses_data_on_a_disk_that_tears_pages(self) -> None:
        """The first record of a change since a page's last write began has an image of the page."""
        report = safe(self.name, 3, tears=True)
        assert report.points > 500 and report.in_recovery > 200

    def test_histories_that_found_faults_find_none(self) -> None:
        """Faults that the first histories let pass, such as checkpoints that forget pages newer on the SSD after a restart."""
        for seed, extension in ((7, "dw"), (49, "lc"), (3014, "dw")):
            safe(self.name, 1, seed, extension=extension, checkpoints="fuzzy")

    def test_recovery_writes_no_page_before_the_records_that_changed_it(self) -> None:
        """Write-ahead holds of compensations too, with pages that leave memory in the midst of undo."""
        pages = compensations = 0
        for seed in range(6):
            injection = Injection(drawn_history(seed, self.name), CrashReport(self.name, ()))
            for _, _, durable in injection.points(injection.history.build()):
                before = durable.end
                for step in injection.recovery(durable).run():
                    if isinstance(step, Write):
                        newest = max((version.lsn for _, version in step.items), default=0) if step.target == PAGES else 0
                        assert newest < durable.end, f"history {seed}: {step} comes before record {newest}"
                        durable.apply(step)
                        pages, compensations = pages + (newest > 0), compensations + (newest >= before)
        assert pages > 100 and compensations > 10

    def test_the_loss_of_the_ssd_loses_no_data(self) -> None:
        """Checkpoints keep the log of what the disk lacks, so that every page may be discarded from the SSD (Do 2012, property 4.2)."""
        assert safe(self.name, 4, inject=without_ssd).points > 500
