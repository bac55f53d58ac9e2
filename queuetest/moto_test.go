package queuetest_test

import (
	"os/exec"
	"strings"
	"testing"

	"tendril/queuetest"
	"tendril/testpeer"
)

// TestMotoConforms runs the suite with the adapter against moto, an independent
// implementation of Amazon's services.
func TestMotoConforms(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	python := testpeer.Python(t, "moto[server,sqs]=="+motoVersion, "moto.server")
	if out, err := exec.Command(python, "-c", "import moto; print(moto.__version__)").Output(); err != nil ||
		strings.TrimSpace(string(out)) != motoVersion {
		testpeer.Missing(t, "moto "+motoVersion, "pip install 'moto[server,sqs]=="+motoVersion+"'")
	}
	endpoint := testpeer.Moto(t, "sqs")
	server := openSQS(t, endpoint, endpoint+"/123456789012/")
	suite := queuetest.Suite{
		Start:   func(testing.TB) queuetest.Server { return server },
		Differs: motoDiffers,
		Repeats: true, // its threads share no lock between "is it visible?" and hiding it
	}
	suite.Run(t)
}

// motoVersion is the version that motoDiffers was made for. Others differ in
// other ways.
const motoVersion = "5.2.5"

// motoDiffers is what moto does otherwise than SQS.
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
