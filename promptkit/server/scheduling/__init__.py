"""
How requests run: which threads there are, and who answers what.

**Threads of a process that serves**

=============  =======================================================  ===============================
Thread         What it does                                             What it may wait for
=============  =======================================================  ===============================
main           imports the recipes; then waits for the end, and looks   anything: nobody waits for it
               every second whether the parent process still exists
leader         a worker: reads, handles every event in place, and       the client; an author's code
               writes the replies (`leader`)
other workers  run slow prompts, completions and resources, read        an author's code
               resources again after a change (`workers`, `executor`)
event loop     runs coroutines; substitutes run them while it is stuck  what coroutines await
               (`event_loop`, `loops`)
delegates      run what coroutines give to `asyncio.to_thread`          an author's code
watchdog       relieves the leader, looks after the event loops, and    locks that are held for moments;
               keeps time limits (`watchdog`)                           the client, to send a refusal
early          reads and answers from the start-up cache, until the     the client
               first leader takes over
waiting        keeps time limits while recipes are imported             the client, to send a refusal
set            writes the start-up cache                                the file system
reload         watches files, and publishes new catalogs                the file system; the import
import         imports changed recipes                                  an author's code
stderr writer  writes what is printed                                   whoever reads standard error
timer          ends the process when its time is over                   nothing
=============  =======================================================  ===============================

The main thread also runs signal handlers. A short thread starts the first leader, as authors' signal
handlers may raise on the main thread.

**Who owns which state**

- The leader alone touches the `Connection`'s lines and session, the events that are left, and the replies
  that are not sent. All of that passes to the next leader together, under the lock of `LeaderFollowers`.
- `InFlight` owns the table of requests that are answered later, under its lock, and with it `held` and
  `settled` of every `Exchange`.
- `Executor` counts the work that runs, under its lock.
- The reload thread replaces the server's snapshot by one assignment. Each `Exchange` keeps the snapshot that
  it began with.
- `Notifier` holds its lock while it tells the client of changes, `Wire` while it writes, `Elicitation` while
  it asks or withdraws.

**How a stuck thread is relieved**

- *Leader:* if the watchdog sees it in the same request for two looks, 10 ms apart, it starts another leader
  and puts the request in flight. The former leader finishes that one request, and ends. The next request
  for the same prompt starts on a worker at once, until a quick run shows that it need not.
- *Worker:* at its deadline the request is refused, and `Abandoned` is raised in the thread, once it is in an
  author's code, and never in ours (`promptkit.errors.interruptions`). If it hangs in C code, it stays, and
  counts against the limit of the executor.
- *Event loop:* if it gives no sign of life for five looks, work that it has not begun moves to a substitute.
- *Watchdog:* it calls no author's code. Should it end, the next request starts another.
- *All of them:* if C code never gives back Python's lock, a timer of the kernel's ends the process
  (`kernel_timer`). At the end a timer thread does, and after that the kernel.

**Why every request has exactly one reply**

A request is answered in place, or it is in flight. The leader passes its own on only by entering it in the
table of `InFlight`, which holds each request at most once. Whoever removes it from the table has to answer
it: the work, a cancellation, the deadline, or the end of the server. Removal is atomic, so nobody else can.
Whatever fails on the way is caught where the request is known, and becomes its reply: by `reply_to` for
authors' code, by the `Executor` and `LeaderFollowers` for everything else. A cancelled request gets none, as
the protocol wants it.
"""
