// Package simulation runs whole environments in virtual time, with faults derived from a seed.
//
// Its tests run the real broker, worker, deliverer, elector, scheduler and fleet loops in a modeled world:
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
// After 5 to 25 minutes, all faults end, and the queue must drain within a time derived from the settings. The oracle
// continuously compares events with docs/contract.md.
//
// # Limits
//
//   - The link excludes the wire protocol of package sqsapi. An embedded queue has no link faults.
//   - HTTP is not simulated.
//   - During a pause, a daemon's timers continue.
//   - A daemon's wall clock jumps by up to three minutes; its monotonic clock is correct.
//
// # Operations
//
// On daemons that share a queue, operators pause and resume it, change settings, and deploy, roll back and abort
// versions. After the faults, all daemons must have the same version and settings.
//
// # The oracle
//
// The oracle allows one more POST or one more receive for each message that a fault can affect, such as the
// messages that a killed daemon held, those deleted between the last sync and a power failure, and those in a lost
// response to a receive. Any other repetition breaks a promise. TestTheOracleFindsBugs injects a bug for each
// promise.
//
// # Reproducibility
//
// All choices depend on the seed, the caller and the virtual time, but not on the order of goroutines. With one
// goroutine running at a time (TestMain), the order hardly ever matters. A failing plan is shortened, printed with its
// history, and written to testdata, where TestKnownPlans runs it.
//
//	go test ./internal/testing/simulation                                    50 seeds
//	go test ./internal/testing/simulation -run Seeds -seed 213 -seeds 1 -v   one seed, with its history
//	TENDRIL_NIGHTLY=1 go test ./internal/testing/simulation -timeout 3h      10,000 seeds derived from the date
package simulation
