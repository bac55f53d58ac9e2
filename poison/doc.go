// Package poison finds the messages that kill the app.
//
// When a copy of the app dies, each message that it had in work may have done
// it. Tried together again they would die together again, and after enough
// receives the innocent would lie in the dead-letter queue beside the killer.
//
//	              its copy died,         alone, and
//	              others were in work    its copy died
//	unsuspected ------------------> suspect ---------> killer
//	     ^                             |                  |
//	     '---- alone, and lived -------'                  | stays alone until its queue
//	                                                      v dead-letters it
//
// A suspect is delivered alone, to a copy of the app that has nothing else, so
// that its death tells on exactly one message, and the others work on meanwhile.
//
// When ten different messages in a row kill it, and it lives through none between,
// it is not the messages: [Finder.Broken] says so, and the app is treated as one
// that crashes by itself.
//
// # Invariants
//
//   - A message is called a killer only when nothing else was in work on the
//     copy that died.
//   - What lived alone once is not suspected any more, whatever it answered.
//   - Memory is bounded: of more than [Options.Most] suspects the oldest is
//     forgotten, and is found again if it kills again.
//
// What is known is this process's own: another instance finds its killers itself.
package poison
