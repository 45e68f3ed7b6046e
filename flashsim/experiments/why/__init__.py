"""Why a run took its time: the latency of requests and the time of phases in parts, and what each mechanism of a device is worth."""
