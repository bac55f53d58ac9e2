// Package losscheck detects messages that a queue lost, invented, duplicated or resurrected.
//
// A test records requests and acknowledgements in a [Log], by a unique key per message. [Log.Check] compares them with
// the messages stored at the end.
package losscheck
