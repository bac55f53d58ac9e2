package main

import (
	"fmt"
	"strings"

	"tendril/api"
	"tendril/internal/host/terminal"
)

// printExchange prints a request and its answer: lines of the request begin with >, those of the answer with <.
func printExchange(c *cli, x *api.Exchange) error {
	var text strings.Builder
	write := func(sign string, head []string, body string, size int) {
		for _, line := range head {
			fmt.Fprintf(&text, "%s %s\n", sign, plain(line))
		}
		fmt.Fprintln(&text, sign)
		for line := range strings.Lines(body) {
			fmt.Fprintf(&text, "%s %s\n", sign, terminal.Plain(strings.TrimRight(line, "\r\n"), true))
		}
		if size > len(body) {
			fmt.Fprintf(&text, "%s (%d of %d bytes)\n", sign, len(body), size)
		}
	}
	write(">", x.Request, x.Body, x.BodySize)
	if len(x.Answer) > 0 {
		write("<", x.Answer, x.AnswerBody, len(x.AnswerBody))
	}
	if x.Error != "" {
		fmt.Fprintf(&text, "* no whole answer after %d ms: %s\n", x.DurationMS, plain(x.Error))
	} else {
		fmt.Fprintf(&text, "* answered after %d ms\n", x.DurationMS)
	}
	_, err := fmt.Fprint(c.out, text.String())
	return err
}
