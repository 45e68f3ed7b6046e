"""Events of which a compiled system of pools tells its log of records (`flashsim.execution.pooled.logged_engine`), and its answers."""

(
    WRITE_FRAME, TAKE_VERSIONS, WRITE_DISK, COMPLETION, END_WRITES_OUT, CLEANED, SERVED, CHANGE, END, UNDO_PAGE, COMPENSATE, CHECKPOINT,
    TIMER, LEFT,
) = range(14)  # fmt: skip
#: Answers on a client's change or end and on a checkpoint's step.
GO_ON, WAIT, UNDO, WRITE_PAGES = range(4)
