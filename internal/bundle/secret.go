package bundle

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"tendril/internal/config/yamlfile"
)

const (
	// hidden stands for a value that is not shown.
	hidden = "(hidden)"
	// maxSearched bounds the search for passwords; longer values are hidden. Elastic Beanstalk takes
	// 4096 bytes of variables in all, while an alias can make two thousand long values of one.
	maxSearched = 4 << 10
)

// The words of names, in lower case.
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
	// passwordServers usually have a password in their URL: DATABASE_URL, REDIS_URL.
	passwordServers = strings.Fields("database db redis mongo mongodb postgres postgresql mysql amqp rabbitmq cloudamqp " +
		"jdbc smtp broker sentry")
)

// isSecret reports whether a variable or option of that name is likely to hold a secret, so that its value is shown
// nowhere. In doubt it does: a hidden value costs less than a shown password.
func isSecret(name string) bool {
	words := words(name)
	joined := strings.Join(words, "")
	if slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(joined, part) }) {
		return true
	}

	for i, w := range words {
		switch {
		case isSecretWord(w), w == "pwd" && len(words) > 1: // PWD alone is the working folder
			return true
		case (w == "url" || w == "uri") && i > 0 && slices.Contains(passwordServers, words[i-1]):
			return true
		}
	}

	return false
}

// isSecretWord reports whether one word of a name marks it as secret, also with others that nothing separates
// from it: DBPASS, PASSPHRASE1, LICENSEKEY, sshkeys.
func isSecretWord(word string) bool {
	starts := func(start string) bool { return strings.HasPrefix(word, start) }
	password := strings.HasPrefix(word, "pass") && !slices.ContainsFunc(notPasswordStarts, starts) ||
		strings.HasSuffix(word, "pass") || strings.HasSuffix(word, "pwd")
	single := strings.TrimSuffix(word, "s")
	return slices.Contains(secretWords, word) || password && !slices.Contains(notPasswords, word) ||
		strings.HasSuffix(single, "key") && !slices.Contains(notKeys, single)
}

// shown is a value for people, on one line.
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
	// named matches the text before a value within a value: the name, the end of its quotes, and the sign.
	named = regexp.MustCompile(`([\w.-]+)(["'\\\]]*)\s*([=:])`)
	// login is a password in a URL, wherever that begins. What follows a host may
	// have an @ in it: digits before a slash are its port.
	login = regexp.MustCompile(`://[^\s/?#:]*:\d*([^\d/?#@][^@]*)?@`)
	// visitor is a URL with a name alone, which on the web is a token.
	visitor = regexp.MustCompile(`(?i)https?://([^\s/?#:@]+)@`)
	// harmless matches text that only looks like a login.
	harmless = regexp.MustCompile(`\barn:aws[\w-]*(:[\w-]*){3}:[\w/:.*+@-]*|@sha(256|512):[0-9a-f]+|\bmailto:`)
	// address is a URL, up to where the next one may begin in a list.
	address = regexp.MustCompile(`[A-Za-z][\w+.-]*://[^\s,;"'<>]*`)
	// bareLogin is user:password@host without a URL around it.
	bareLogin = regexp.MustCompile(`:[^\s@]*[^\s@:]@`)
)

// holdsPassword reports whether a value shows by itself that it is secret: a key
// file, a URL or a list of settings with a password in it, or too much to tell.
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

// secretPart reports whether the text after a name within a value is likely to be secret, by the name's end:
// api_key=x, but not key-store=/etc/x. A bare colon stands behind any word, so that only clear ones count there.
func secretPart(name string, bareColon bool) bool {
	words := words(name)
	if len(words) == 0 {
		return false
	}
	joined, last := strings.Join(words, ""), words[len(words)-1]
	return slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(joined, end) }) ||
		last == "pass" || !bareColon && isSecretWord(last)
}

// words splits a name at signs and at capitals, in lower case and without the
// numbers at their ends: DB_PASSWORD, db.password and DBPassword1 are the same.
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

// unnumbered is a word without the number at its end, where that is not part of it.
func unnumbered(word string) string {
	if word == "auth0" { // a company, whose domain is no secret
		return word
	}
	return strings.TrimRight(word, "0123456789")
}
