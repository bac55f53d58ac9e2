package queuetest_test

import (
	"testing"

	"tendril/internal/testing/testpeer"
	"tendril/queuetest"
)

func TestServersConform(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the servers start slowly: not with -short")
	}
	for _, c := range []struct {
		name    string
		start   func(testing.TB) (endpoint string)
		account string
		differs map[string]string
	}{
		{"moto", func(t testing.TB) string { return testpeer.Moto(t, "sqs") }, "123456789012", motoDiffers},
		{"ElasticMQ", testpeer.ElasticMQ, "000000000000", elasticMQDiffers},
		{"MiniStack", testpeer.MiniStack, "000000000000", miniStackDiffers},
	} {
		t.Run(c.name, func(t *testing.T) { // parallel checks keep each one busy
			endpoint := c.start(t)
			server := openSQS(t, endpoint, endpoint+"/"+c.account+"/")
			suite := queuetest.Suite{
				Start:   func(testing.TB) queuetest.Server { return server },
				Differs: c.differs,
				Repeats: c.name == "moto", // moto does not lock between reading and changing visibility
			}
			suite.Run(t)
		})
	}
}

var motoDiffers = map[string]string{
	"queue: a standard queue has no attributes for high throughput":         "they are accepted",
	"C4 dead letters: without a count there are ten receives":               "the policy is refused",
	"G5 queue: KMS and SQS-managed encryption exclude each other":           "both are accepted",
	"B1 receipt: on a standard queue an older one still acts":               "an older receipt counts as malformed",
	"E1 fifo: a message in flight blocks those behind it, not those before": "it blocks the whole group",
	"E3 fifo: extending one message holds those behind it":                  "it holds the whole group",
	"E4 fifo: a group whose messages expired goes behind the others":        "groups take no turns",
	"E4 fifo: a group that was given out goes behind the others":            "groups take no turns",
	"send: the trace header comes back":                                     "system attributes of a batch are dropped",
	"D5 send: a bad entry does not harm the others":                         "control characters are accepted",
	"limits: an empty body is refused":                                      "an empty body in a batch is accepted",
	"limits: characters outside XML are refused":                            "every character is accepted",
	"D7 limits: MaximumMessageSize counts body and attributes":              "one message too large fails the whole batch",
	"limits: a message has at most 10 attributes":                           "any number is accepted in a batch",
	"F6 limits: attributes that SQS refuses":                                "names and values in a batch are not checked",
	"B3 receipt: a FIFO queue refuses one that has expired":                 "an expired receipt deletes",
	"B8 visibility: a deleted message cannot be changed":                    "the receipt counts as malformed",
	"B7 visibility: a change never hides what is visible again":             "it is hidden",
	"C6 dead letters: they name their source":                               "the attribute is missing",
	"C4 dead letters: a policy is refused when it cannot work":              "the policy is hardly checked",
	"C7 dead letters: from one dead-letter queue to the next":               "the receive count blocks the second move",
	"D2 delay: a FIFO queue's delay holds for all":                          "a message's delay of 0 wins",
	"E10 fifo: sequence numbers grow":                                       "they are random",
	"fifo: ids are 1 to 128 plain characters":                               "ids are not checked",
	"E9 fifo: an attempt id repeats a receive":                              "attempt ids are ignored",
	"E5 deduplication: the second send is answered with the first": "" +
		"the duplicate is dropped, but has its own id, and the id is forgotten at the delete",
	"E5 deduplication: within one batch":                "the duplicate is dropped, but has its own id",
	"E6 deduplication: by group when the queue says so": "the scope is ignored",
	"queue: names that SQS refuses":                     "a standard queue may be called .fifo",
	"queue: attributes out of range are refused":        "values are not checked",
}

var elasticMQDiffers = map[string]string{
	"G6 queue: booleans in any case, returned in lower case":          "FifoQueue True is no FIFO queue",
	"queue: a standard queue has no attributes for high throughput":   "they are accepted",
	"C4 dead letters: without a count there are ten receives":         "the policy is refused",
	"G5 queue: KMS and SQS-managed encryption exclude each other":     "the attributes do not exist",
	"queue: the defaults of SQS":                                      "size and retention are not attributes",
	"fifo: a batch with one message without its ids fails as a whole": "the missing ids are made up",
	"E2 fifo: one receive gives a group in order":                     "a send returns no sequence number",
	"E10 fifo: sequence numbers grow":                                 "a send returns no sequence number",
	"E9 fifo: an attempt id repeats a receive":                        "the next messages of the group are given out",
	"C6 dead letters: a FIFO group goes on without the message":       "the sequence number is lost",
	"B8 visibility: a deleted message cannot be changed":              "the receipt counts as malformed",
	"B5 receipt: deleting twice is not an error":                      "the receipt counts as malformed",
	"B1 receipt: on a standard queue an older one still acts":         "an older receipt counts as malformed",
	"B1 receipt: each receive has its own, the newest deletes":        "an older receipt counts as malformed",
	"limits: an empty body is refused":                                "refused with another code",
	"limits: characters outside XML are refused":                      "refused with another code",
	"D5 send: a bad entry does not harm the others":                   "refused with another code",
	"limits: one message may fill a megabyte":                         "one too large is refused with another code",
	"D6 limits: a batch may not exceed a megabyte":                    "refused with another code",
	"limits: what a receive may ask for":                              "refused with another code",
	"D6 limits: a batch has 1 to 10 entries":                          "an empty batch is accepted",
	"D7 limits: MaximumMessageSize counts body and attributes":        "the attribute has no effect",
	"F6 limits: attributes that SQS refuses":                          "names are not checked",
	"E4 fifo: a group whose messages expired goes behind the others":  "groups take no turns",
	"E4 fifo: a group that was given out goes behind the others":      "groups take no turns",
	"C4 dead letters: a policy is refused when it cannot work":        "a target of the other type is accepted",
	"B10 visibility: 12 hours in all from the receive":                "there is no limit",
	"B3 receipt: a FIFO queue refuses one that has expired":           "an expired receipt deletes",
	"G3 queue: purge takes everything, once a minute":                 "any number of purges a minute",
	"queue: attributes out of range are refused":                      "values are not checked, no number is status 500",
	"E6 deduplication: by group when the queue says so":               "the scope is ignored",
	"C7 dead letters: from one dead-letter queue to the next":         "the message is never moved on",
	"B7 visibility: a change never hides what is visible again":       "it is hidden",
}

var miniStackDiffers = map[string]string{
	"queue: names that SQS refuses":                                   "a standard queue may be called .fifo",
	"queue: a standard queue has no attributes for high throughput":   "they are accepted",
	"C4 dead letters: without a count there are ten receives":         "the policy is refused",
	"E9 fifo: an attempt id repeats a receive":                        "attempt ids are ignored",
	"fifo: a batch with one message without its ids fails as a whole": "the good ones of the batch are sent",
	"G6 queue: booleans in any case, returned in lower case":          "returned as they were written",
	"fifo: ids are 1 to 128 plain characters":                         "ids are not checked",
	"G5 queue: KMS and SQS-managed encryption exclude each other":     "both are accepted",
	"B5 receipt: deleting twice is not an error":                      "the receipt counts as malformed",
	"B1 receipt: each receive has its own, the newest deletes":        "an older receipt counts as malformed",
	"B1 receipt: on a standard queue an older one still acts":         "an older receipt counts as malformed",
	"B8 visibility: a deleted message cannot be changed":              "the receipt counts as malformed",
	"D7 limits: MaximumMessageSize counts body and attributes":        "attributes are not counted",
	"limits: a delay is at most 15 minutes":                           "a longer one is accepted",
	"limits: a message has at most 10 attributes":                     "any number is accepted",
	"limits: what a receive may ask for":                              "any wait and visibility timeout are accepted",
	"send: the trace header comes back":                               "it is dropped",
	"E4 fifo: a group that was given out goes behind the others":      "groups take no turns",
	"E4 fifo: a group whose messages expired goes behind the others":  "groups take no turns",
	"C4 dead letters: a policy is refused when it cannot work":        "a target of the other type is accepted",
	"queue: attributes out of range are refused":                      "unknown attributes are accepted",
	"F6 limits: attributes that SQS refuses":                          "names and types are not checked",
	"B10 visibility: 12 hours in all from the receive":                "there is no limit",
	"B3 receipt: a FIFO queue refuses one that has expired":           "an expired receipt deletes",
	"G3 queue: purge takes everything, once a minute":                 "any number of purges a minute",
	"E8 deduplication: purge forgets":                                 "the ids are kept",
	"E3 fifo: extending one message holds those behind it":            "it holds the whole group",
	"C7 dead letters: from one dead-letter queue to the next":         "the receive count prevents the second move",
	"B7 visibility: a change never hides what is visible again":       "it is hidden",

	"E1 fifo: a message in flight blocks those behind it, not those before": "it blocks the whole group",
}
