package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// confirm lets an act go on that cannot be undone: with yes, or when the person
// at the terminal types word. Nobody at a terminal and no yes is a usage error.
func (c *cli) confirm(act, word string, yes bool) error {
	if yes {
		return nil
	}
	if !c.ttyIn {
		return fail(exitUsage, fmt.Errorf("this would %s, which cannot be undone", act), "add --yes when you mean it")
	}
	fmt.Fprintf(c.err, "This will %s. It cannot be undone.\nType %s to go on: ", act, word)
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && line == "" || strings.TrimSpace(line) != word {
		return fail(exitFailed, errors.New("nothing was done: what was typed is not "+word))
	}
	return nil
}
