package tendril_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// bannedWords are private words of earlier versions and what to write instead. They
// are refused in identifiers, comments, error texts and log texts.
var bannedWords = map[string]string{
	"courier":     "delivery middleware",
	"parcel":      "prepared delivery",
	"door":        "remote target",
	"lone":        "quarantine",
	"wellbeing":   "health monitor",
	"stranger":    "foreign listener",
	"keeper":      "what it adds, or maintenance loop",
	"desk":        "mutex with deferred callbacks",
	"glance":      "short poll",
	"cramped":     "a plain name for the state of the backlog",
	"brake":       "limiter state",
	"verdict":     "error class",
	"arrangement": "delivery order",
	"kin":         "process tree",
	"latch":       "start barrier",
	"bury":        "reap",
	"teller":      "event dispatcher",
	"killer":      "poison message",
	"suspect":     "quarantined message",
	"mend":        "fix",
	"survey":      "archive check",
	"pile":        "message source",
	"graveyard":   "dead-letter queue",
	"outbox":      "batch sender",
	"outlet":      "output writer",
	"exam":        "suite",
	"rig":         "harness",
	"guest":       "client",
	"witness":     "observer",
	"twin":        "second instance",
}

// bannedIdentifiers are words that are fine in a sentence but say too little, or
// something else, as a name in code.
var bannedIdentifiers = map[string]string{
	"hand":    "in-flight tracker",
	"box":     "batcher",
	"aside":   "deferred messages",
	"hope":    "expected messages",
	"rich":    "a plain name for the state of the backlog",
	"wet":     "a plain name for the state of the backlog",
	"books":   "counters",
	"catch":   "receive result",
	"tie":     "process marker",
	"hair":    "epsilon",
	"mute":    "ignored",
	"ill":     "failed",
	"isolate": "poison-message detection",
	"fire":    "scheduled run",
	"tell":    "notify, report or write",
	"told":    "notified, reported or written",
	"hear":    "receive",
	"heard":   "received events",
	"pick":    "selector",
}

// bannedPhrases are phrases that no native speaker would write.
var bannedPhrases = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)(?:^|[^e]|[^r]e) is none\b`), "there is no ..., or invalid ..."},
	{regexp.MustCompile(`(?i)\bdoes not get on\b`), "is not responding"},
	{regexp.MustCompile(`(?i)\bfor who\b`), "if you"},
}

// notYetPlain lists the packages that still use words from the tables above. It may
// only become shorter.
var notYetPlain = []string{}

// notYetConstant lists the packages with log messages that contain values. It may
// only become shorter.
var notYetConstant = []string{}

func TestNoBannedWords(t *testing.T) {
	checkExceptDebt(t, notYetPlain, "notYetPlain", func(s sourceFile) []string {
		var found []string
		report := func(pos token.Pos, word, instead string) {
			found = append(found, fmt.Sprintf("%s: %q: write %s", s.fset.Position(pos), word, instead))
		}
		report = once(report)
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				for _, word := range wordsOf(n.Name) {
					if instead, ok := lookUp(word, bannedWords, bannedIdentifiers); ok {
						report(n.Pos(), n.Name, instead)
					}
				}
			case *ast.BasicLit:
				isWireName := strings.HasPrefix(n.Value, "`json:") // a key that clients read stays
				if n.Kind == token.STRING && !s.test && !isWireName {
					checkProse(n.Value, func(word, instead string) { report(n.Pos(), word, instead) })
				}
			case *ast.ImportSpec:
				return false
			}
			return true
		})
		for _, group := range s.file.Comments {
			checkProse(group.Text(), func(word, instead string) { report(group.Pos(), word, instead) })
		}
		return found
	})
}

// once drops repeated reports of a word, so that a common name is one failure per
// file.
func once(report func(token.Pos, string, string)) func(token.Pos, string, string) {
	seen := map[string]bool{}
	return func(pos token.Pos, word, instead string) {
		if !seen[word] {
			seen[word] = true
			report(pos, word, instead)
		}
	}
}

var proseWord = regexp.MustCompile(`[A-Za-z]+`)

// checkProse calls report for each banned word or phrase of a comment or message.
func checkProse(text string, report func(word, instead string)) {
	for _, word := range proseWord.FindAllString(text, -1) {
		for _, part := range wordsOf(word) {
			if instead, ok := lookUp(part, bannedWords); ok {
				report(word, instead)
			}
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, p := range bannedPhrases {
		if match := p.phrase.FindString(text); match != "" {
			report(match, p.instead)
		}
	}
}

// lookUp finds a word, or the singular or infinitive of it, in the tables.
func lookUp(word string, tables ...map[string]string) (instead string, ok bool) {
	for _, table := range tables {
		for _, ending := range []string{"", "s", "ed", "ing"} {
			if instead, ok := table[strings.TrimSuffix(word, ending)]; ok {
				return instead, true
			}
		}
	}
	return "", false
}

// wordsOf splits an identifier into its words in lower case: "keptPauses" is "kept"
// and "pauses".
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			cut(i)
			start = i + 1
		case i > start && unicode.IsUpper(r) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			cut(i)
			start = i
		}
	}
	cut(len(runes))
	return words
}

// messageArgument is the position of the message in the calls that log.
var messageArgument = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0,
	"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2, "note": 2,
}

// TestLogMessagesAreConstant: a message with values in it can neither be searched
// for nor grouped. Values belong into attributes.
func TestLogMessagesAreConstant(t *testing.T) {
	constants := map[string]bool{} // package and name
	files := sources(t)
	for _, s := range files {
		for _, decl := range s.file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						constants[s.room+"."+name.Name] = true
					}
				}
			}
		}
	}
	checkExceptDebt(t, notYetConstant, "notYetConstant", func(s sourceFile) []string {
		if s.test || strings.HasSuffix(s.room, "observe/event") { // which passes on the messages of its callers
			return nil
		}
		var found []string
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			message, ok := logMessage(call)
			if ok && !isConstant(message, func(name string) bool { return constants[s.room+"."+name] }) {
				where := s.fset.Position(call.Pos())
				found = append(found, fmt.Sprintf("%s: the log message contains a value: make it an attribute", where))
			}
			return true
		})
		return found
	})
}

// logMessage returns the message of a call that logs.
func logMessage(call *ast.CallExpr) (message ast.Expr, ok bool) {
	name, position := "", 0
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && (x.Name == "http" || x.Name == "t") {
			return nil, false
		}
		name = f.Sel.Name
		position, ok = messageArgument[name]
	case *ast.Ident: // a local function that shortens the call
		name = f.Name
		position, ok = 1, name == "note"
	}
	if !ok || len(call.Args) <= position {
		return nil, false
	}
	return call.Args[position], true
}

// isConstant reports whether an expression is a string constant.
func isConstant(e ast.Expr, named func(string) bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return isConstant(e.X, named) && isConstant(e.Y, named)
	case *ast.Ident:
		return named(e.Name)
	}
	return false
}

// checkExceptDebt reports what find finds in each package, except for those that the
// debt lists. A listed package in which nothing is found must be removed from the
// list.
func checkExceptDebt(t *testing.T, debt []string, list string, find func(sourceFile) []string) {
	t.Helper()
	found := map[string][]string{}
	for _, s := range sources(t) {
		if s.room != "." {
			found[s.room] = append(found[s.room], find(s)...)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(debt, room) {
			for _, f := range found[room] {
				t.Error(f)
			}
		}
	}
	for _, room := range debt {
		if len(found[room]) == 0 {
			t.Errorf("package %s is clean: remove it from %s in lint_language_test.go", strconv.Quote(room), list)
		}
	}
}

func TestWordsOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"keptPauses": "kept pauses", "HTTPHand": "http hand", "a1b": "a b", "snake_case": "snake case", "ID": "id", "x": "x",
	} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("wordsOf(%q) = %q, want %q", name, got, want)
		}
	}
}
