// Package runtimeapi runs a Lambda function on this machine behind the Lambda Runtime API.
//
// A [Pool] runs up to Instances processes of one command, passes each one invocation at a time, and returns responses
// like Lambda's Invoke:
//
//	p, err := runtimeapi.New(runtimeapi.Options{Command: []string{"./bootstrap"}, Instances: 4})
//	...
//	p.Start()
//	answer, err := p.Invoke(ctx, event, nil) // answer.FunctionError == "" is a success
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
//	starting --next--> idle --assigned--> busy --response, error--> responded --next--> idle
//	    |               ^ | hung up        | dead, too late            |
//	    v init failed   | v                v                           v killed at the
//	  a pause          away            Unhandled error              time limit, if no next
//
// # Invariants
//
//   - Every process has its own port, so that a killed process cannot answer for its successor.
//   - An invocation is assigned at most once, and a process handles one at a time.
//   - A response counts once it is posted completely. The process is free when it requests the next invocation.
//   - When a process dies, the rest of its process group is killed before Invoke returns.
//   - Only the function receives invocations. Requests with a different Host header, from a browser or, on Linux, from
//     programs outside the process group and its children are rejected.
//
// Errors posted by the function, the death of its process, timeouts, and oversized or streamed responses have the
// FunctionError "Unhandled". If a process exits before its first request, the oldest waiting invocation receives the
// error. After that, or after the exit of an idle process, no process starts for 500 ms, doubled each time up to 30 s.
// If no process is alive during such a pause, Invoke returns status 429 and RetryAfter.
//
// There is no sandbox, and processes that leave the group (setsid) outlive the function. Extensions, telemetry,
// SnapStart, response streaming and freezing are not supported.
package runtimeapi
