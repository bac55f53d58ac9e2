// Package bundle reads an Elastic Beanstalk source bundle.
//
// A bundle is a folder that holds an app and says how to run it:
//
//	DIR/
//	  Procfile          web: the app          -> Bundle.Processes, Bundle.Web
//	                    name: one more process
//	  cron.yaml, Buildfile, env.yaml,
//	  .ebextensions/, .platform/              -> Bundle.Unsupported
//
// [Open] reads all of it at once and starts nothing. A [Bundle] is a value:
// the files are closed again, and a change on disk is seen by the next Open.
//
// # Invariants
//
// The first of Processes is web, where there is one; the others follow in the
// order of the file. Every process has a line number, so that whoever starts
// it can point at the line that asked for it. What Elastic Beanstalk would act
// on and this package does not is named in Unsupported, never skipped in
// silence.
//
// # When something is wrong
//
// A bad file is an [Error] that holds every [Problem] at once, each with file
// and line and what to write instead. Files are read to a bound. A folder
// without a Procfile is no error by itself, since the command may come from
// elsewhere: [Bundle.Web] gives the advice when the app is asked for.
//
// # What it does not do
//
// It runs no command, expands no variable and unpacks no archive.
package bundle
