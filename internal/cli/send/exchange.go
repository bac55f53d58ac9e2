package send

import (
	"fmt"
	"strings"

	"tendril/api"
	"tendril/internal/cli/base"
	"tendril/internal/host/terminal"
)

// PrintExchange prints a request, with lines starting with ">", and its answer, with lines starting with "<".
func PrintExchange(c *base.CLI, x *api.Exchange) error {
	var text strings.Builder
	write := func(sign string, head []string, body string, size int) {
		for _, line := range head {
			fmt.Fprintf(&text, "%s %s\n", sign, base.Plain(line))
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
		fmt.Fprintf(&text, "* no complete response after %d ms: %s\n", x.DurationMS, base.Plain(x.Error))
	} else {
		fmt.Fprintf(&text, "* response after %d ms\n", x.DurationMS)
	}

	_, err := fmt.Fprint(c.Out, text.String())
	return err
}

// PrintAnswer prints an app's answer, indented.
func PrintAnswer(c *base.CLI, answer string) error {
	for line := range strings.Lines(strings.TrimSpace(answer)) {
		if _, err := c.Println("      " + base.Plain(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}
