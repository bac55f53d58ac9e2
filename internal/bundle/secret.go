package bundle

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"tendril/internal/config/yamlfile"
)

const (
	hidden = "(hidden)"
	// Longer values are hidden without a search. Elastic Beanstalk allows 4096 bytes for all variables together.
	maxSearched = 4 << 10
)

// These parts of lower-case names indicate, or rule out, a secret.
var (
	secretParts = strings.Fields("password passwd passphrase secret token credential apikey accesskey privatekey " +
		"connectionstring webhook")
	secretEnds = strings.Fields("password passwd passphrase pwd secret token apikey accesskey accountkey secretkey " +
		"privatekey credential credentials authorization signature sig")
	secretWords  = strings.Fields("pw dsn salt auth jwt hmac otp cookie signature pin cert pem")
	notPasswords = strings.Fields("bypass compass encompass surpass trespass overpass underpass lowpass highpass " +
		"bandpass pwd oldpwd")
	notPasswordStarts = strings.Fields("passenger passiv passthr passage passed passes passing passion passable " +
		"passover passport")
	notKeys = strings.Fields("monkey surveymonkey donkey turkey hockey jockey whiskey lackey mickey hotkey turnkey " +
		"valkey")
	// The URLs of these servers usually contain a password, as in DATABASE_URL and REDIS_URL.
	passwordServers = strings.Fields("database db redis mongo mongodb postgres postgresql mysql amqp rabbitmq cloudamqp " +
		"jdbc smtp broker sentry")
)

// isSecret returns true in case of doubt, because hiding a value does less harm than leaking it.
func isSecret(name string) bool {
	words := wordsOf(name)
	joined := strings.Join(words, "")
	if slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(joined, part) }) {
		return true
	}

	for i, w := range words {
		switch {
		case isSecretWord(w), w == "pwd" && len(words) > 1: // PWD by itself is the working directory
			return true
		case (w == "url" || w == "uri") && i > 0 && slices.Contains(passwordServers, words[i-1]):
			return true
		}
	}

	return false
}

func isSecretWord(word string) bool {
	single := strings.TrimSuffix(word, "s")
	isKey := strings.HasSuffix(single, "key") && !slices.Contains(notKeys, single)
	return isKey || isPasswordWord(word) || slices.Contains(secretWords, word)
}

func isPasswordWord(word string) bool {
	isPrefix := func(start string) bool { return strings.HasPrefix(word, start) }
	starts := isPrefix("pass") && !slices.ContainsFunc(notPasswordStarts, isPrefix)
	ends := strings.HasSuffix(word, "pass") || strings.HasSuffix(word, "pwd")
	return (starts || ends) && !slices.Contains(notPasswords, word)
}

// HideSecret returns value on one line, or "(hidden)" if it may be secret.
func HideSecret(name, value string) string {
	if value == "" {
		return value
	}
	if isSecret(name) || mayHoldPassword(value) {
		return hidden
	}
	return yamlfile.OneLine(value)
}

var (
	namedField = regexp.MustCompile(`([\w.-]+)(["'\\\]]*)\s*([=:])`)
	// An @ may also follow the host, so digits before a slash are read as a port.
	passwordInURL = regexp.MustCompile(`://[^\s/?#:]*:\d*([^\d/?#@][^@]*)?@`)
	// userInURL matches a URL with a user name, usually a token, but no password.
	userInURL        = regexp.MustCompile(`(?i)https?://([^\s/?#:@]+)@`)
	publicIdentifier = regexp.MustCompile(`\barn:aws[\w-]*(:[\w-]*){3}:[\w/:.*+@-]*|@sha(256|512):[0-9a-f]+|\bmailto:`)
	// anyURL stops at characters that may separate list items.
	anyURL = regexp.MustCompile(`[A-Za-z][\w+.-]*://[^\s,;"'<>]*`)
	// loginOutsideURL matches user:password@host.
	loginOutsideURL = regexp.MustCompile(`:[^\s@]*[^\s@:]@`)
)

func mayHoldPassword(value string) bool {
	if len(value) > maxSearched || strings.Contains(value, "-----BEGIN ") || passwordInURL.MatchString(value) ||
		hasTokenInURL(value) {
		return true
	}
	value = publicIdentifier.ReplaceAllString(value, " ")
	return hasSecretField(value) || loginOutsideURL.MatchString(anyURL.ReplaceAllString(value, " "))
}

func hasTokenInURL(value string) bool {
	for _, found := range userInURL.FindAllStringSubmatch(value, -1) {
		if found[1] != "git" {
			return true
		}
	}
	return false
}

func hasSecretField(value string) bool {
	for _, at := range namedField.FindAllStringSubmatchIndex(value, -1) {
		name := value[at[2]:at[3]]
		isQuoted := at[4] < at[5]
		sign := value[at[6]:at[7]]
		hasValue := strings.TrimSpace(value[at[1]:]) != ""
		if hasValue && isSecretField(name, sign == ":" && !isQuoted) {
			return true
		}
	}
	return false
}

// isSecretField judges by the end of a name within a value: api_key=x, but not key-store=/etc/x. An unquoted colon can
// follow any word, so only unambiguous names count there.
func isSecretField(name string, bareColon bool) bool {
	words := wordsOf(name)
	if len(words) == 0 {
		return false
	}
	joined := strings.Join(words, "")
	last := words[len(words)-1]
	if last == "pass" || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(joined, end) }) {
		return true
	}
	return !bareColon && isSecretWord(last)
}

func wordsOf(name string) (all []string) {
	var word []rune
	endWord := func() {
		if w := unnumbered(strings.ToLower(string(word))); w != "" {
			all = append(all, w)
		}
		word = word[:0]
	}

	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			endWord()
			continue
		}
		if startsWord(runes, i) {
			endWord()
		}
		word = append(word, r)
	}
	endWord()
	return all
}

func startsWord(runes []rune, i int) bool {
	if i == 0 || !unicode.IsUpper(runes[i]) {
		return false
	}
	isNextLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
	return unicode.IsLower(runes[i-1]) || unicode.IsUpper(runes[i-1]) && isNextLower
}

func unnumbered(word string) string {
	if word == "auth0" { // the company, whose domain is public
		return word
	}
	return strings.TrimRight(word, "0123456789")
}
