package deliver

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tendril/queue"
)

func TestReadSteering(t *testing.T) {
	t.Parallel()
	const most = 12 * time.Hour
	for _, tt := range []struct {
		header, problem string
		want            instruction
	}{
		{"retry", "", instruction{verb: verbRetry}},
		{"retry; after=90s", "", instruction{verb: verbRetry, timed: true, time: 90 * time.Second}},
		{"retry;after=90", "", instruction{verb: verbRetry, timed: true, time: 90 * time.Second}},
		{"retry; after=0", "", instruction{verb: verbRetry, timed: true}},
		{"retry; after=1h30m", "", instruction{verb: verbRetry, timed: true, time: 90 * time.Minute}},
		{`retry; after="12h"`, "", instruction{verb: verbRetry, timed: true, time: most}},
		{`retry ; reason="busy; try later" ; after=5m`, "",
			instruction{verb: verbRetry, timed: true, time: 5 * time.Minute, reason: "busy; try later"}},
		{"drop", "", instruction{verb: verbDrop}},
		{"drop; reason=old", "", instruction{verb: verbDrop, reason: "old"}},
		{`dead-letter; reason="no \"such\" order \\ 7"`, "",
			instruction{verb: verbDeadLetter, reason: `no "such" order \ 7`}},
		{`dead-letter; reason=""`, "", instruction{verb: verbDeadLetter}},
		{"dead-letter; reason=\"a\x1b[31mb\xff\u202e\"", "", instruction{verb: verbDeadLetter, reason: `a\x1b[31mb\u202e`}},
		{`drop; reason="` + strings.Repeat("x", 500) + `"`, "",
			instruction{verb: verbDrop, reason: strings.Repeat("x", shownCharacters) + "..."}},
		{"extend; for=30m", "", instruction{verb: verbExtend, timed: true, time: 30 * time.Minute}},
		{"extend; for=1s", "", instruction{verb: verbExtend, timed: true, time: time.Second}},
		{"extend; for=999ms", problemExtend, instruction{}},
		{"", problemWord, instruction{}},
		{"done", problemWord, instruction{}},
		{"Retry", problemWord, instruction{}},
		{"retry after=90s", problemWord, instruction{}},
		{"drop, retry", problemWord, instruction{}},
		{"retry;", problemForm, instruction{}},
		{"retry; after", problemForm, instruction{}},
		{"retry; after=", problemForm, instruction{}},
		{"retry; after =9", problemForm, instruction{}},
		{"retry; reason=two words", problemForm, instruction{}},
		{`retry; reason="open`, problemForm, instruction{}},
		{`retry; reason="open\`, problemForm, instruction{}},
		{`retry; reason="a"b`, problemForm, instruction{}},
		{"retry; when=9", problemForm, instruction{}},
		{"retry; for=9", problemName, instruction{}},
		{"retry; after=9; after=9", problemName, instruction{}},
		{"drop; after=9", problemName, instruction{}},
		{"extend; for=9; reason=x", problemName, instruction{}},
		{"retry; after=-9s", problemTime, instruction{}},
		{"retry; after=soon", problemTime, instruction{}},
		{"retry; after=13h", problemTime, instruction{}},
		{`retry; after=""`, problemTime, instruction{}},
		{"retry; after=99999999999999999999", problemTime, instruction{}},
		{"extend", problemExtend, instruction{}},
		{"extend; for=0", problemExtend, instruction{}},
	} {
		got, problem := parseInstruction([]string{tt.header})
		if got != tt.want || problem != tt.problem {
			t.Errorf("%q: got %+v, problem %q; want %+v, %q", tt.header, got, problem, tt.want, tt.problem)
		}
	}
	if _, problem := parseInstruction([]string{"drop", "drop"}); problem != problemTwice {
		t.Errorf("given twice: %q", problem)
	}
}

func FuzzReadSteering(f *testing.F) {
	f.Add(`retry; after=90s; reason="a\"b"`)
	f.Add("extend; for=30m")
	f.Fuzz(func(t *testing.T, header string) {
		s, problem := parseInstruction([]string{header})
		if (problem == "") != (s.verb != verbNone) || s.time < 0 || s.time > maxInstructionTime ||
			len(s.reason) > 12*(shownCharacters+3) || strings.ContainsAny(s.reason, "\r\n\x1b") {
			t.Errorf("%q: %+v, %q", header, s, problem)
		}
	})
}

func answerWith(status, headers, body string) string {
	return "HTTP/1.1 " + status + " X\r\n" + headers + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

func TestAppSteersTheOutcome(t *testing.T) {
	t.Parallel()
	terminal, err := ParseStatusSet("400,422")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, answer string
		want         queue.Result
		problem      string
	}{
		{"later, after a failure", answerWith("503", "Tendril-Outcome: retry; after=90s\r\nRetry-After: 7\r\n", "busy"),
			queue.Result{Status: 503, Reason: "HTTP 503 (app says retry in 1m30s)", Answer: "busy",
				Instruction: queue.Retry, RetryAfter: 90 * time.Second}, ""},
		{"later, after a success", answerWith("200", "tendril-outcome: retry; after=0; reason=\"not yet\"\r\n", "fine"),
			queue.Result{Status: 200, Reason: "HTTP 200 (app says retry in 0s)", Answer: "not yet",
				Instruction: queue.Retry}, ""},
		{"again, when the settings say", answerWith("422", "Tendril-Outcome: retry\r\nRetry-After: 7\r\n", ""),
			queue.Result{Status: 422, Reason: "HTTP 422 (app says retry)", RetryAfter: 7 * time.Second},
			""},
		{"dropped", answerWith("410", "Tendril-Outcome: drop; reason=gone\r\n", "x"),
			queue.Result{Outcome: queue.Done, Status: 410, Reason: "HTTP 410 (app says drop)",
				Answer: "gone", Instruction: queue.Drop}, ""},
		{"dropped, but cut off", "HTTP/1.1 410 X\r\nTendril-Outcome: drop\r\nContent-Length: 9\r\n\r\nx",
			queue.Result{Status: 410, Reason: "response was cut off"}, ""},
		{"dead-lettered", answerWith("200", "Tendril-Outcome: dead-letter; reason=\"no picture\"\r\n", ""),
			queue.Result{Status: 200, Reason: "HTTP 200 (app says dead-letter)", Answer: "no picture",
				Instruction: queue.DeadLetterNow}, ""},
		{"dead-lettered, in a success that is cut off",
			"HTTP/1.1 200 X\r\nTendril-Outcome: dead-letter\r\nContent-Length: 9\r\n\r\nx",
			queue.Result{Status: 200, Reason: "response was cut off"}, ""},
		{"a terminal status", answerWith("422", "", "no such user"),
			queue.Result{Status: 422, Reason: "HTTP 422", Answer: "no such user", Instruction: queue.TerminalStatus}, ""},
		{"another status", answerWith("500", "", ""), queue.Result{Status: 500, Reason: "HTTP 500"}, ""},
		{"a malformed header", answerWith("200", "Tendril-Outcome: retry; after=soon\r\n", ""),
			queue.Result{Outcome: queue.Done, Status: 200}, problemTime},
		{"a malformed header of a terminal status", answerWith("400", "Tendril-Outcome: stop\r\n", ""),
			queue.Result{Status: 400, Reason: "HTTP 400", Instruction: queue.TerminalStatus}, problemWord},
		{"two headers", answerWith("500", "Tendril-Outcome: drop\r\nTendril-Outcome: drop\r\n", ""),
			queue.Result{Status: 500, Reason: "HTTP 500"}, problemTwice},
		{"extended, when it failed already", answerWith("500", "Tendril-Outcome: extend; for=1h\r\n", ""),
			queue.Result{Status: 500, Reason: "HTTP 500"}, problemTooLate},
		{"settled early", "HTTP/1.1 103 X\r\nTendril-Outcome: drop\r\n\r\n" + answerWith("500", "", ""),
			queue.Result{Status: 500, Reason: "HTTP 500"}, problemEarly},
		{"in a trailer", "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n.\r\n0\r\n" +
			"Tendril-Outcome: dead-letter; reason=late\r\n\r\n",
			queue.Result{Status: 200, Reason: "HTTP 200 (app says dead-letter)", Answer: "late",
				Instruction: queue.DeadLetterNow}, ""},
	} {
		var problems []string
		h, _ := start(t, alwaysAnswerAndClose(tt.answer), func(o *Options) {
			o.TerminalCodes = terminal
			o.Events.OutcomeIgnored = func(problem string) { problems = append(problems, problem) }
		})
		got := deliver(h, message())
		got.Duration, got.Err = 0, nil
		if got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, got, tt.want)
		}
		if strings.Join(problems, ",") != tt.problem {
			t.Errorf("%s: problems %q, want %q", tt.name, problems, tt.problem)
		}
	}
}

func alwaysAnswerAndClose(answer string) func(*appConn) {
	return func(c *appConn) {
		if _, ok := c.read(); ok {
			c.write(answer)
		}
	}
}

func TestAppExtendsItsTime(t *testing.T) {
	t.Parallel()
	const idle = 180 * time.Second
	const extend = "Tendril-Outcome: extend; for=30m\r\n"
	early := "HTTP/1.1 102 Processing\r\n" + extend + "\r\n"
	streamed := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + extend + "\r\n"
	for _, tt := range []struct {
		name    string
		app     func(*appConn)
		outcome queue.Outcome
		status  int
		reason  string
		took    time.Duration
	}{
		{"an informational answer", func(c *appConn) {
			c.drip(time.Minute, early)
			c.drip(29*time.Minute, ok200)
		}, queue.Done, 200, "", 30 * time.Minute},
		{"and it is late all the same", func(c *appConn) { c.drip(time.Minute, early) }, queue.Failed, 0,
			"response stalled for 30m0s, as the app requested", 31 * time.Minute},
		{"shortened again", func(c *appConn) {
			c.drip(time.Minute, early, "HTTP/1.1 102 X\r\nTendril-Outcome: extend; for=5s\r\n\r\n")
		}, queue.Failed, 0, "response stalled for 5s, as the app requested", 2*time.Minute + 5*time.Second},
		{"a streamed success", func(c *appConn) {
			c.write(streamed)
			c.drip(29*time.Minute, "1\r\n.\r\n", "1\r\n.\r\n", "0\r\n\r\n")
		}, queue.Done, 200, "", 87 * time.Minute},
		{"a streamed success that breaks off", func(c *appConn) {
			c.write(streamed)
			c.drip(29*time.Minute, "1\r\n.\r\n")
			c.Close()
		}, queue.Failed, 200, "response was cut off", 29 * time.Minute},
		{"a malformed header gives no time", func(c *appConn) {
			c.write("HTTP/1.1 102 X\r\nTendril-Outcome: extend\r\n\r\n")
		}, queue.Failed, 0, "no response within 3m0s", idle},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, _ := startPiped(t, func(c *appConn) {
				c.read()
				tt.app(c)
				c.wait()
			})
			r := deliver(h, message())
			want(t, r, tt.outcome, tt.status, tt.reason)
			if r.Duration != tt.took {
				t.Errorf("%s: took %v, want %v", tt.name, r.Duration, tt.took)
			}
			if r.Outcome == queue.Done {
				if next := deliver(h, message()); next.Outcome != queue.Failed || next.Duration > idle+time.Second {
					t.Errorf("%s: then %+v", tt.name, next)
				}
			}
		})
	}
}
