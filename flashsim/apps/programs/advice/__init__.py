"""Which drive suits a load: latencies, the greatest load, write amplification and life by drive."""
