// Package bench measures the whole daemon as users run it: a test SQS endpoint, an app and tendril, or another program
// that takes messages, each a process of its own, against a bare net/http loop posting the same bodies to the same app
// in the same run.
//
//	sqs process  <--SQS protocol--  tendril up --queue-url ... --target ...  --POST-->  app process
//	                                 another program                         --POST-->  app process
//	                                 bare client (the ceiling)               --POST-->  app process
//
// Every figure is a ratio or a count of one run; none is a test with a time limit. The test endpoint answers with
// messages made beforehand and checks nothing, so that what is measured is the daemon and not a queue. Servers of the
// protocol are measured by BenchmarkEndpoint, with one client.
//
//	go test -run '^$' -bench . -benchtime 1x ./bench
//	go run ./bench/report                               # in rounds, with the other programs
package bench
