"""What must survive a restart of the operator: annotations of the job's ConfigMap.

Each part is explained where it is decided: `replacement`, `launcher_status`, `launcher_retry`,
`host_announcement` and `leaving_workers`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .cached_types import StoredConfigMap
from .host_announcement import change_annotation, stored_change
from .job_state import NO_FAILURE, LastFailure
from .launcher_status import failure_annotation, stored_failure
from .leaving_workers import Departures, departures_annotation, stored_departures
from .replacement import Counts, as_annotation, stored_counts
from .retry_count import NO_RETRIES, LauncherRetries, retries_annotation, stored_retries


@dataclass(frozen=True)
class JobRecord:
    """What the operator records about one job."""

    replacements: Counts = field(default_factory=dict)
    last_failure: LastFailure = NO_FAILURE
    retries: LauncherRetries = NO_RETRIES
    hosts_changed: datetime | None = None
    departures: Departures = field(default_factory=dict)

    def annotations(self) -> Mapping[str, str]:
        """The record as it is stored."""
        return {
            **as_annotation(self.replacements),
            **failure_annotation(self.last_failure),
            **retries_annotation(self.retries),
            **change_annotation(self.hosts_changed),
            **departures_annotation(self.departures),
        }


def stored_record(config_map: StoredConfigMap) -> JobRecord:
    """The record in a ConfigMap. What was not written by us counts as absent."""
    return JobRecord(
        stored_counts(config_map),
        stored_failure(config_map),
        stored_retries(config_map),
        stored_change(config_map),
        stored_departures(config_map),
    )
