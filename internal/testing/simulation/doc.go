// Package simulation runs whole environments in virtual time, with faults derived from a seed.
//
// It consists of tests only. They run the real broker, worker, deliverer, elector, scheduler and the loops of an
// instance of a fleet in a modelled world:
//
//	producer ---link--+                                  app (modelled)
//	                  v                                    ^
//	              broker <---link--- worker ------- delivery stages
//	                |   <---link--- elector, scheduler     one to four daemons, each with its clock
//	                |   <---link--- instances: desired state, records, rollouts, settings
//	                v
//	              SQLite on a file system that loses unsynced writes
//
//	plan (from a seed): sizes, settings, messages, faults, operations  -->  world  -->  oracle: broken promises
//
// The world executes the plan: five to twenty-five minutes of faults, after which everything works and the queue must
// drain within a time derived from the settings. The oracle continuously compares events with docs/contract.md.
//
// # Faults
//
//   - The link between a daemon and the queue delays calls, loses requests and answers, and throttles. It does not
//     include the wire protocol of package sqsapi. A daemon with an embedded queue has no such faults.
//   - The app answers slowly, with errors, never, or after twice the visibility timeout; it is down for a while, or
//     throttles. HTTP is not simulated; package deliver tests it.
//   - kill -9 disconnects a daemon from queue and app. A pause delays its calls, answers and deliveries while its
//     timers continue, because a process cannot be stopped inside another one.
//   - A power failure keeps synced writes and some of the others. The queue restarts from these files.
//   - The wall clock of a daemon jumps by up to three minutes; its monotonic clock is correct.
//
// # Operations
//
// Operators pause and resume the queue, change settings, deploy versions in batches, roll back and abort, on daemons
// that share a queue. Some settings are rejected by one daemon, and some versions do not start or are unhealthy. After
// the faults, all daemons must end with the same version and the same settings.
//
// # The oracle
//
// It knows the possible effects of each fault on each message. A killed daemon allows one more POST of each message
// it held, a power failure one more of each message deleted since the last sync, a lost answer one more receive.
// Anything else breaks a promise; without faults, there are no duplicates, and only messages refused by the app
// become dead letters. TestTheOracleFindsBugs breaks each promise and checks that the oracle reports it.
//
// # Reproducibility
//
// The plan, the app's answers, the faults of each call and the spread of retries depend on the seed, the caller and
// the virtual time, but not on the order of goroutines. That order is determined by the runtime. With one goroutine
// running at a time (TestMain) it hardly ever matters; TestOneSeedIsOneHistory compares histories. If a failure
// cannot be reproduced, its whole history is printed.
//
// A failing plan is shortened while it still fails, printed with its history, and written to testdata. TestKnownPlans
// runs all plans there.
//
//	go test ./internal/testing/simulation                                    50 seeds
//	go test ./internal/testing/simulation -run Seeds -seed 213 -seeds 1 -v   one seed, with its history
//	TENDRIL_NIGHTLY=1 go test ./internal/testing/simulation -timeout 3h      10,000 seeds derived from the date
package simulation
