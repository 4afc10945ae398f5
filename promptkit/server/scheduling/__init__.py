"""
How requests run: a leader reads and answers in place, and a watchdog relieves it when it is stuck.

The threads of a process, and who owns which state, are listed in ``docs/architecture.md``.

**The quick way of a request:** the leader reads it, calls its handler, and sends the reply (`leader`).

**The slow way,** step by step. Its state (`promptkit.server.exchange.State`) is changed by `in_flight` alone:

1. A request becomes slow in one of two ways. Its handler leaves it to a worker or the event loop
   (`executor`), to a question or to a stream. Or the watchdog sees the leader in the same request for 10 ms,
   starts another leader, and notes that the prompt is slow: until a quick run, its next requests are left to
   workers. The former leader finishes that one request, and ends.
2. From then on it is in the table of `in_flight`, with a time limit. What takes it out of the table answers
   it, so that it has exactly one reply: the work, the time limit, a cancellation, which gets none, or
   the end of the server.
3. Work that is answered by something else is stopped. A coroutine is cancelled. In a thread, `Abandoned` is
   raised once it is in an author's code, and never in ours (`promptkit.errors.interruptions`). If it hangs in
   C code, it stays, and counts against the limit of the executor.
4. A question that is answered brings the request back to the leader.

Whatever fails on the way is caught where the request is known, and becomes its reply: by `reply_to` for
authors' code, by the `Executor` and `LeaderFollowers` for everything else.

If C code never gives back Python's lock, a timer of the kernel's ends the process (`watchdog.KernelTimer`).
"""
