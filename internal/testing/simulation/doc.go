// Package simulation lives through the lives of whole environments, in virtual time and with faults that follow from a
// seed.
//
// It has no code of its own: its tests put the real broker, worker, deliverer, elector and scheduler together, and
// everything around them is modelled.
//
//	producer ---link--+                                  app (modelled)
//	                  v                                    ^
//	              broker <---link--- worker ------- delivery stages
//	                |   <---link--- elector, scheduler     one to four daemons, each with its clock
//	                v
//	              SQLite on a file system that loses unsynced writes
//
//	plan (from a seed): sizes, settings, messages, faults  -->  world  -->  oracle: which promise was broken
//
// A plan is drawn from a seed. The world lives through it: five to twenty-five minutes of trouble, then everything is
// healed, and the queue has to drain within a time that follows from the settings. On each step, and at the end, the
// oracle holds what happens against docs/contract.md.
//
// # What is modelled
//
//   - The link between a daemon and the queue delays calls, loses requests and answers, and throttles. The wire
//     protocol of package sqsapi is not part of it. A daemon with an embedded queue has no such faults.
//   - The app answers late, with failures, not at all, or twice as late as the visibility timeout; it is down for a
//     while, or throttles. HTTP is not part of it: package deliver has tests of its own.
//   - kill -9 cuts a daemon off from queue and app. A pause holds up its calls, answers and deliveries, while its
//     timers run on: no process can be stopped inside of another one.
//   - A power failure keeps what was synced, and of the rest a share. The queue starts from these files.
//   - The wall clock of a daemon is set by up to three minutes. The monotonic one is right.
//
// # The oracle
//
// It knows what a fault may cost, message by message: a daemon that is killed excuses one more POST of what it held, a
// power failure one of what was deleted without a sync since, a lost answer to a receive charges one receive. What was
// not excused counts as a broken promise, so that a life without faults has no duplicate and no dead letter but those
// that the app refuses. TestTheOracleFindsBugs breaks each promise in the world around the parts, and wants it to be
// found.
//
// # One seed, one history
//
// The plan, the app's answers, the trouble of each call and the spread of retries follow from the seed, and from who
// asks for what at which virtual time: not from the order in which goroutines run. That order is the runtime's.
// With one goroutine at a time (TestMain) it hardly ever matters; TestOneSeedIsOneHistory compares and counts. A seed
// that breaks a promise once and not again is printed with its whole history.
//
// # A seed that breaks a promise
//
// The plan is made shorter as long as it still breaks a promise, printed with its history, and written to testdata.
// TestKnownPlans lives through all plans there, in each run of the tests.
//
//	go test ./internal/testing/simulation                                    50 seeds
//	go test ./internal/testing/simulation -run Seeds -seed 213 -seeds 1 -v   one seed, with its history
//	TENDRIL_NIGHTLY=1 go test ./internal/testing/simulation -timeout 3h      10,000 seeds that follow from the date
package simulation
