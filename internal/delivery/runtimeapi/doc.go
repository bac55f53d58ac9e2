// Package runtimeapi runs a Lambda function on this machine behind the Lambda Runtime API.
//
// A [Pool] runs up to Instances processes of one command, passes each of them one invocation at a time, and answers
// like Lambda's Invoke:
//
//	p, err := runtimeapi.New(runtimeapi.Options{Command: []string{"./bootstrap"}, Instances: 4})
//	...
//	p.Start()
//	answer, err := p.Invoke(ctx, event)  // answer.FunctionError == "" is a success
//	...
//	err = p.Stop(ctx)
//
// Every process has its own HTTP server:
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
//   - Every process has its own port, which identifies it, so that a killed process cannot answer for its successor.
//     (Most clients accept only host and port as the address, which rules out a path per process.)
//   - At most Instances processes exist, including exiting ones. Each handles one invocation at a time, and an
//     invocation is assigned at most once.
//   - [Pool.Start] starts the first process, so that a function that cannot run is detected early. Others start when an
//     invocation finds no idle process. The most recently used process is reused first, and one is always kept.
//   - An answer counts as soon as the function has posted it. The process is free again when it asks for the next
//     invocation.
//   - When a process dies, the rest of its process group is killed before its invocation is answered.
//   - Only the function receives invocations. On Linux, package supervisor determines the program behind a connection:
//     one outside the process, its group and their children is refused, whoever its user is, and reported by
//     [Events.Refused]. A process has at most 16 connections; a new one replaces an idle one. Requests with another host
//     name, or from a page in a browser, are refused on all systems.
//
// # Failures
//
// Errors posted by the function are answers with FunctionError "Unhandled". So are the death of its process
// (Runtime.ExitError), a timeout (Sandbox.Timedout), an oversized response (Function.ResponseSizeTooLarge) and a
// streamed one. If a process exits before asking for its first invocation, the oldest waiting invocation gets the
// error. After that, or after an idle process exited, there is a pause of 500 ms, doubled each time up to 30 s, until
// an invocation is answered. If no process is alive during a pause, Invoke answers 429 with RetryAfter: the function
// was not run.
//
// If tendril itself is killed, package supervisor kills the function's processes.
//
// # Out of scope
//
// There is no sandbox: the function runs as our user and with our limits unless Options set others, and processes
// that leave the group (setsid) outlive it. Extensions, the telemetry API, SnapStart, response streaming and freezing
// are not supported. Answers need not be JSON; the caller checks them.
package runtimeapi
