package sqsapi

import (
	"strings"

	"tendril/queue"
)

// queueName returns the queue that a QueueUrl names. Any scheme, host and
// account are accepted, since the name alone identifies a queue of one
// broker and programs keep URLs of other endpoints; so is a bare name.
func queueName(url string) (string, error) {
	if url == "" {
		return "", missing("QueueUrl")
	}
	path := url
	if _, rest, ok := strings.Cut(url, "://"); ok {
		if _, path, ok = strings.Cut(rest, "/"); !ok {
			return "", notAnAddress(url)
		}
	} else if path, ok = strings.CutPrefix(url, "/"); !ok && !strings.Contains(url, "/") {
		return url, nil
	}
	account, name, ok := strings.Cut(path, "/")
	name = strings.TrimSuffix(name, "/")
	if !ok || account == "" || name == "" || strings.Contains(name, "/") {
		return "", notAnAddress(url)
	}
	return name, nil
}

func notAnAddress(url string) *queue.Error {
	return queue.Errorf(queue.CodeInvalidAddress, "The address %s is not valid for this endpoint.", url)
}

// queueURL returns the URL of a queue under the host that the client used:
// older SDKs send their next request to that host.
func (h *Handler) queueURL(c caller, name string) string {
	return c.base + "/" + h.account + "/" + name
}
