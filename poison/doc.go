// Package poison detects the messages that crash the app.
//
// When a replica of the app crashes, each message that it had in work may be the
// cause. Delivered together again they would crash it again, and after enough
// receives harmless messages would be dead-lettered beside the poison message.
//
//	            the replica crashed with      delivered alone, and
//	            several messages in work      the replica crashed
//	harmless -------------------------> quarantined ----------> poison
//	    ^                                    |                     |
//	    '---- delivered alone, survived -----'                     | stays quarantined until
//	                                                               v its queue dead-letters it
//
// A quarantined message is delivered alone, to a replica that has no other message.
// A crash then points at exactly one message, and the other replicas keep working.
//
// When ten different messages in a row crash the app, and it survives none in
// between, the app itself is broken: [Detector.Broken] reports that, and the app is
// treated as one that crashes by itself.
//
// # Invariants
//
//   - A message is called poison only when nothing else was in work on the replica
//     that crashed.
//   - A message that was delivered alone and survived is released, whatever the
//     answer was.
//   - Memory is bounded: at most 10,000 messages are quarantined. Beyond that the
//     oldest is forgotten, and detected again if it crashes the app again.
//
// # What it does not do
//
// It starts nothing and delivers nothing: the caller asks [Detector.Quarantined]
// before a delivery and reports its end. Its knowledge is that of one process, and
// another instance detects its poison messages itself.
package poison
