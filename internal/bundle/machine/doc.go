// Package machine applies the sections of a bundle that change the machine.
//
// Elastic Beanstalk has them applied by cfn-init, on instances that it made for the app. Here they are applied only
// where the person who runs tendril says that the machine is to be changed.
//
//	bundle.Machine --> Plan --> Step, Step, ...          what "tendril check" lists
//	                              |
//	                              v
//	        files, archives <-- Applier --> System       package managers, groups, users,
//	        (os)                                         commands, services: programs
//
// [Plan] puts the sections in cfn-init's order: packages, groups, users, sources, files, commands, services, for one
// configuration file after the other. An [Applier] takes the steps one after the other, and remembers which of them
// changed something: a service is restarted when something changed that it names.
//
// # Invariants
//
//   - A step that finds everything as it is to be changes nothing. Package managers, getent and systemctl are asked
//     before they are told; the content, mode and owner of files are compared before they are written. Commands are
//     the exception: they run each time, unless their test fails.
//   - A file is replaced as a whole, by a rename, and the one that was there is kept beside it with the suffix .bak.
//   - An archive is unpacked below its folder and nowhere else, whatever the names and links in it say.
//   - What is downloaded comes by TLS or from this machine, and is bounded.
//
// # What it does not do
//
// It undoes nothing: a deployment that fails leaves the machine as it is by then. It does not know whether it may
// change the machine, nor whether it is root: the caller does.
package machine
