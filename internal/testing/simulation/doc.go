// Package simulation runs whole environments in virtual time, with faults derived from a seed.
//
// It contains only tests, which run the real broker, worker, deliverer, elector, scheduler and the loops of an
// instance of a fleet in a modeled world:
//
//	producer ---link--+                                  app (modeled)
//	                  v                                    ^
//	              broker <---link--- worker ------- delivery stages
//	                |   <---link--- elector, scheduler     one to four daemons, each with its own clock
//	                |   <---link--- instances: desired state, records, rollouts, settings
//	                v
//	              SQLite on a file system that loses unsynced writes
//
//	plan (from a seed): sizes, settings, messages, faults, operations  -->  world  -->  oracle: broken promises
//
// After five to twenty-five minutes, all faults end, and the queue must drain within a time derived from the settings.
// The oracle continuously compares events with docs/contract.md.
//
// # Limits
//
//   - The link does not include the wire protocol of package sqsapi. An embedded queue has no link faults.
//   - HTTP is not simulated: package deliver has its own tests.
//   - During a pause, a daemon's timers continue, because a process cannot be stopped inside another one.
//   - A daemon's wall clock jumps by up to three minutes; its monotonic clock is correct.
//
// # Operations
//
// On daemons that share a queue, operators pause and resume the queue, change settings, and deploy, roll back and abort
// versions. After the faults, all daemons must end with the same version and the same settings.
//
// # The oracle
//
// For each fault, the oracle knows which messages the fault can affect, and allows each of them one more POST or one
// more receive: the messages that a killed daemon held, the messages deleted between the last sync and a power failure,
// and the messages in a lost response to a receive. Any other repetition breaks a promise. TestTheOracleFindsBugs
// injects a bug for each promise and checks that the oracle reports it.
//
// # Reproducibility
//
// All choices depend on the seed, the caller and the virtual time, but not on the order of goroutines, which the
// runtime determines. With one goroutine running at a time (TestMain), the order hardly ever matters. If a failure
// cannot be reproduced, its whole history is printed.
//
// A failing plan is shortened while it still fails, printed with its history, and written to testdata. TestKnownPlans
// runs all plans there.
//
//	go test ./internal/testing/simulation                                    50 seeds
//	go test ./internal/testing/simulation -run Seeds -seed 213 -seeds 1 -v   one seed, with its history
//	TENDRIL_NIGHTLY=1 go test ./internal/testing/simulation -timeout 3h      10,000 seeds derived from the date
package simulation
