// Package runtimeapi runs a Lambda function on this machine behind the Lambda
// Runtime API.
//
// A [Pool] runs up to Instances processes of one command, hands each an
// invocation at a time, and answers as the cloud's Invoke would:
//
//	p, err := runtimeapi.New(runtimeapi.Options{Command: []string{"./bootstrap"}, Instances: 4})
//	...
//	p.Start()
//	answer, err := p.Invoke(ctx, event)  // answer.FunctionError == "" is a success
//	...
//	err = p.Stop(ctx)
//
// Every process is a client of an HTTP server that belongs to it alone:
//
//	Invoke --> waiting --+--------- dispatch (dispatch.go) ----------+
//	                     |  idle?                    none idle, room? |
//	                     v                                            v
//	  GET  /2018-06-01/runtime/invocation/next            a new process, its own
//	  POST /2018-06-01/runtime/invocation/ID/response     port, its own group
//	  POST /2018-06-01/runtime/invocation/ID/error
//	  POST /2018-06-01/runtime/init/error
//
//	starting --next--> idle --assigned--> busy --response, error--> answered --next--> idle
//	    |               ^ | hung up        | dead, too late            |
//	    v init failed   | v                v                           v killed at the
//	  a pause          away            Unhandled error              time limit, if no next
//
// # Invariants
//
//   - A process has a port of its own, made for it and closed with it. So a
//     request tells which process asks, and one that was killed cannot answer
//     for its successor. (A path before the API's would do the same with one
//     port, but most clients take the address for a host and a port only.)
//   - At most Instances processes are alive, those that are just ending
//     included, and one works on at most one invocation. An invocation is
//     handed out at most once.
//   - The first process starts with [Pool.Start], so that a function that cannot
//     run is known early; each other when an invocation finds nobody idle. The
//     one that was busy last is used first. One is always kept.
//   - The answer counts as soon as the function has posted it; the process is
//     free again when it asks for the next invocation.
//   - A process leaves nothing behind: the rest of a process's group gets KILL before an
//     invocation that died with it is answered.
//   - Only the function is answered. On Linux the system says which program made a
//     connection (package supervisor): one that is not the process, of its group or
//     started by these is refused, whoever its user is, and [Events.Refused] tells.
//     Elsewhere that is not known. A process has at most 16 connections: an idle one is
//     closed for a new one. A request with another host name, or from a page in
//     a browser, is refused everywhere.
//
// # When the function fails
//
// An error that the function posts is the answer, with FunctionError
// "Unhandled". So are the death of its process (Runtime.ExitError), the time
// limit (Sandbox.Timedout), a response that is too large
// (Function.ResponseSizeTooLarge) and a streamed one. A process that ends before
// it asked for its first invocation answers the oldest that waits for it. After
// that, and after a process that ended while it was idle, comes a pause of
// 500 ms, doubled each time up to 30 s, until an invocation was answered again. In
// the pause, when no other process lives, Invoke answers 429 with RetryAfter: the
// function was not run.
//
// # When this process dies
//
// A kill -9 of ours leaves no process of the function: package supervisor, which starts
// them, sees to that.
//
// # What it does not do
//
// No sandbox: the function runs as our user unless Options has another, within no
// limits but those of Options, and what leaves its process group (setsid) outlives it.
// No extensions, no telemetry API,
// no SnapStart, no streaming of responses, no freezing between invocations.
// Whether an answer is JSON is left to who asked for it.
package runtimeapi
