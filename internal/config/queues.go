package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxQueues = 64
	maxWeight = 1000
)

func queueList(field *[]QueueSettings) value {
	v := stored(field, kindList, fmt.Sprintf("1 to %d names, URLs or ARNs of queues, comma-separated, either all or "+
		"none with a weight of 1 to %d, such as jobs:3", maxQueues, maxWeight), parseQueues, formatQueues)
	v.nearest = fixQueues
	return v
}

func parseQueues(text string) ([]QueueSettings, error) {
	queues, err := parseEachQueue(text)
	if err != nil {
		return nil, err
	}
	return queues, checkQueues(queues)
}

func parseEachQueue(text string) (queues []QueueSettings, err error) {
	for item := range strings.SplitSeq(text, ",") {
		q, err := parseQueue(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

func parseQueue(item string) (QueueSettings, error) {
	var q QueueSettings
	ref, weight, weighted := splitWeight(item)
	if weighted {
		n, err := strconv.ParseUint(weight, 10, 16)
		if err != nil || n < 1 || n > maxWeight {
			return q, fmt.Errorf("has the weight %s for %s, which is not a number from 1 to %d", shown(weight), shown(ref),
				maxWeight)
		}
		q.Weight = int(n)
	}

	var err error
	switch {
	case item == "":
		return q, errors.New("has a comma without a queue")
	case strings.Contains(ref, ":"):
		q.URL, err = queueURL(ref)
		q.Name = lastSegment(ref)
	default:
		q.Name, err = queueName(ref)
	}

	if err != nil {
		return q, fmt.Errorf("names %s, which %w", shown(ref), err)
	}

	return q, nil
}

// splitWeight recognizes the colons of URLs and ARNs.
func splitWeight(item string) (ref, weight string, weighted bool) {
	const inARN = 5 // colons
	at := strings.LastIndexByte(item, ':')
	switch {
	case at < 0:
	case strings.HasPrefix(item, "arn:"):
		weighted = strings.Count(item, ":") > inARN
	case strings.Contains(item, "://"):
		weighted = at > strings.LastIndexByte(item, '/')
	default:
		weighted = true
	}

	if !weighted {
		return item, "", false
	}

	return item[:at], item[at+1:], true
}

func checkQueues(queues []QueueSettings) error {
	if len(queues) > maxQueues {
		return fmt.Errorf("has %d queues, more than %d", len(queues), maxQueues)
	}

	seen := map[string]bool{}
	for i := range queues {
		q := &queues[i]
		if seen[q.Name] {
			return fmt.Errorf("has two queues with the name %s", q.Name)
		}
		seen[q.Name] = true
	}
	return checkWeights(queues)
}

func checkWeights(queues []QueueSettings) error {
	weighted := slices.IndexFunc(queues, func(q QueueSettings) bool { return q.Weight > 0 })
	unweighted := slices.IndexFunc(queues, func(q QueueSettings) bool { return q.Weight == 0 })
	if weighted < 0 || unweighted < 0 {
		return nil
	}
	return fmt.Errorf("has a weight for %s but not for %s: give every queue a weight, or none for strict order",
		queues[weighted].Name, queues[unweighted].Name)
}

// fixQueues adds missing weights and drops duplicates. It returns "" if the result is still
// invalid, or too long for a hint.
func fixQueues(text string) string {
	const longest = 200
	all, err := parseEachQueue(text)
	if err != nil {
		return ""
	}

	weighted := slices.ContainsFunc(all, func(q QueueSettings) bool { return q.Weight > 0 })
	var queues []QueueSettings
	for _, q := range all {
		if weighted {
			q.Weight = max(1, q.Weight)
		}
		if !slices.ContainsFunc(queues, func(other QueueSettings) bool { return other.Name == q.Name }) {
			queues = append(queues, q)
		}
	}

	if fixed := formatQueues(queues); len(queues) <= maxQueues && len(fixed) <= longest {
		return fixed
	}

	return ""
}

func formatQueues(queues []QueueSettings) string {
	var items []string
	for i := range queues {
		item := queues[i].reference()
		if w := queues[i].Weight; w > 0 {
			item += ":" + strconv.Itoa(w)
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}
