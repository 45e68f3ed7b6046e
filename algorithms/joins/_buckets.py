"""Options of Grace and hybrid hash join, which make buckets."""

from dataclasses import dataclass

from algorithms.joins.base import JoinOptions, JoinParameters
from algorithms.partitioning.base import PartitionOptions, PartitionParameters, check_options


@dataclass(frozen=True)
class BucketOptions(PartitionOptions, JoinOptions):
    """How buckets are made."""


def partitioning_of(parameters: JoinParameters) -> PartitionParameters:
    """Parameters of the partition method."""
    options = parameters.options_of(BucketOptions)
    in_series = parameters.in_series and options.strands == 1
    return PartitionParameters(**vars(options), page_io=parameters.page_io, in_series=in_series)


def check(parameters: JoinParameters) -> None:
    """Refuse what the partition method does not take."""
    check_options(partitioning_of(parameters))
