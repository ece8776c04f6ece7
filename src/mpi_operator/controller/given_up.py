"""On which worker a launcher gave up, and what that worker itself complains about."""

from . import pod_state
from .observed import Observed
from .remote_words import gave_up


def given_up(seen: Observed, words: str) -> str:
    """A sentence, from the last words of a launcher; empty where it did not give up.

    "Connection refused" is all that a launcher can say of a worker whose image is missing.
    """
    contact = gave_up(words)
    if contact is None:
        return ""
    workers = (pod for pod in seen.workers.values() if pod.metadata.name == contact.worker)
    complaints = (pod_state.complaint(pod, seen.probed_container) for pod in workers)
    reason, message = next(complaints, None) or ("", "")
    return f"{contact.sentence}; {reason}: {message}" if reason else contact.sentence
