package main

// equivalent is a mutant that no test can detect.
type equivalent struct {
	pkg, file string
	place
	reason string
}

// equivalents are excluded from the figures. Add an entry only if the code cannot be written in a way that avoids it.
var equivalents = []equivalent{
	{"internal/delivery/webhook", "webhook.go", place{"Signer.AppendHeaders", "boundary", "cap(w.content) > largestKept"},
		"whether a buffer of exactly this size is kept shows in memory alone"},
	{"internal/delivery/filter", "read.go", place{"unquote", "boundary", `bytes.IndexByte(plain, '\\') < 0`},
		"a backslash at the start is escaped, or escapes what follows"},
	{"internal/delivery/limit", "breaker.go", place{"breaker.onStateChanged", "increment", "b.generation++"},
		"generations are only compared for equality"},
	{"internal/delivery/limit", "limiter.go", place{"Limiter.Acquire", "increment", "l.permits++"},
		"permits are only compared for equality, and count down from 2^64-1 then"},
	{"internal/delivery/limit", "rate.go", place{"rateLimiter.timeUntil", "boundary", "nanoseconds >= math.MaxInt64"},
		"the library allows a message for which it computes a wait of exactly 2^63 ns"},
	{"internal/delivery/limit", "rate.go", place{"rateLimiter.acquire", "boundary", "n > 0"},
		"reserving 0 messages changes nothing"},
	{"internal/cron/leader", "core.go", place{"core.newAttempt", "increment", "c.writes++"},
		"versions are only compared for equality"},
	{"internal/delivery/deliver", "lambda_event.go", place{"renderEvent", "arithmetic", "len(eventStart) + len(eventEnd)"},
		"a capacity, which append corrects"},
	{"internal/delivery/deliver", "batch.go", place{"InParts", "boundary", "next < len(ms)"},
		"without messages there is no part, which ends the loop too"},
	{"internal/autoscale", "trigger.go", place{"Policy.resize", "boundary", "by > 0"}, "an increment is never 0"},
	{"internal/autoscale", "trigger.go", place{"Policy.resize", "boundary", "next > d.From"}, "equal sizes were dealt with above"},
	{"broker", "fifo.go", place{"newFIFO", "boundary", "a.messages[0].due < b.messages[0].due"},
		"groups whose delays end together become ready together, and their turns are ordered apart"},
	{"broker", "fifo.go", place{"fifoOrder.takeFrom", "boundary", "m.key > firstOut"}, "a message that is out is not queued"},
	{"internal/sqsapi", "json.go", place{"encodeJSON", "boundary", "len(r.Successful) > 0"},
		"both encoders write the same of an empty answer"},
	{"internal/sqsapi", "json.go", place{"encodeJSON", "negation", "len(r.Successful) > 0"},
		"the standard encoder writes the same, only slower"},
	{"internal/worker", "settle.go", place{"settler.settle", "boundary", "len(batch) > 1"},
		"a message without others is behind none"},
}
