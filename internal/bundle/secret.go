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
	words := words(name)
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

// isSecretWord also recognizes compounds such as DBPASS, PASSPHRASE1, LICENSEKEY and sshkeys.
func isSecretWord(word string) bool {
	starts := func(start string) bool { return strings.HasPrefix(word, start) }
	password := strings.HasPrefix(word, "pass") && !slices.ContainsFunc(notPasswordStarts, starts) ||
		strings.HasSuffix(word, "pass") || strings.HasSuffix(word, "pwd")
	single := strings.TrimSuffix(word, "s")
	return slices.Contains(secretWords, word) || password && !slices.Contains(notPasswords, word) ||
		strings.HasSuffix(single, "key") && !slices.Contains(notKeys, single)
}

func shown(name, value string) string {
	if value == "" {
		return value
	}
	if isSecret(name) || holdsPassword(value) {
		return hidden
	}
	return yamlfile.OneLine(value)
}

var (
	named = regexp.MustCompile(`([\w.-]+)(["'\\\]]*)\s*([=:])`)
	// login matches a password in a URL. An @ may also follow the host, so digits before a slash are read as a port.
	login = regexp.MustCompile(`://[^\s/?#:]*:\d*([^\d/?#@][^@]*)?@`)
	// visitor matches a URL with a user name, usually a token, but no password.
	visitor  = regexp.MustCompile(`(?i)https?://([^\s/?#:@]+)@`)
	harmless = regexp.MustCompile(`\barn:aws[\w-]*(:[\w-]*){3}:[\w/:.*+@-]*|@sha(256|512):[0-9a-f]+|\bmailto:`)
	// address stops at characters that may separate list items.
	address = regexp.MustCompile(`[A-Za-z][\w+.-]*://[^\s,;"'<>]*`)
	// bareLogin matches user:password@host outside a URL.
	bareLogin = regexp.MustCompile(`:[^\s@]*[^\s@:]@`)
)

// holdsPassword also returns true for a value that is too long to search.
func holdsPassword(value string) bool {
	if len(value) > maxSearched || strings.Contains(value, "-----BEGIN ") || login.MatchString(value) {
		return true
	}

	for _, found := range visitor.FindAllStringSubmatch(value, -1) {
		if found[1] != "git" {
			return true
		}
	}

	value = harmless.ReplaceAllString(value, " ")
	for _, at := range named.FindAllStringSubmatchIndex(value, -1) {
		name := value[at[2]:at[3]]
		quoted := at[4] < at[5]
		sign := value[at[6]:at[7]]
		if strings.TrimSpace(value[at[1]:]) != "" && secretPart(name, sign == ":" && !quoted) {
			return true
		}
	}

	return bareLogin.MatchString(address.ReplaceAllString(value, " "))
}

// secretPart judges by the end of a name within a value: api_key=x, but not key-store=/etc/x. An unquoted colon can
// follow any word, so only unambiguous names count there.
func secretPart(name string, bareColon bool) bool {
	words := words(name)
	if len(words) == 0 {
		return false
	}
	joined, last := strings.Join(words, ""), words[len(words)-1]
	return slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(joined, end) }) ||
		last == "pass" || !bareColon && isSecretWord(last)
}

func words(name string) []string {
	var all []string
	var word []rune
	end := func() {
		if w := unnumbered(strings.ToLower(string(word))); w != "" {
			all = append(all, w)
		}
		word = word[:0]
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]):
			end()
		case unicode.IsUpper(r) && i > 0 && unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			end()
		}
		word = append(word, r)
	}

	end()
	return all
}

func unnumbered(word string) string {
	if word == "auth0" { // the company, whose domain is public
		return word
	}
	return strings.TrimRight(word, "0123456789")
}
