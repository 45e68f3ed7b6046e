"""The memory of a started process, for programs that tests hand to ``python -c``."""

#: Defines `peak_memory`, in bytes.  What `getrusage` tells begins with the memory of the process that started this one.
PEAK_MEMORY = """
def peak_memory():
    with open("/proc/self/status") as status:
        return 1024 * int(status.read().partition("VmHWM:")[2].split()[0])
"""
