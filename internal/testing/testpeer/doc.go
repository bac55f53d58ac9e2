// Package testpeer gives tests the programs of others that they run against.
//
// They are no part of a Go installation: a test that misses one is skipped, and says so
// loudly. The variables of the environment that count:
//
//	TENDRIL_PYTHON           a Python with what the test needs; python3 when unset
//	TENDRIL_PYTHON_QUERY     a Python with packages of before November 2023, which speak the Query protocol
//	TENDRIL_PYTHON_MINISTACK a Python with MiniStack
//	TENDRIL_JAVA_SQS         a folder of Java archives: the SDK for Java with its dependencies
//	TENDRIL_JAVA_SQS_QUERY   the same, of before November 2023
//	TENDRIL_JAVA_ELASTICMQ   a folder of Java archives: ElasticMQ with its dependencies
//	TENDRIL_NODE_MODULES     a folder node_modules
//	TENDRIL_REQUIRE_PEERS    1 for failing instead of skipping
//
// The gate installs all of them and sets the last one.
//
// [Moto], [ElasticMQ], [MiniStack] and [Dynalite] run a server that stands in for Amazon until the test ends.
package testpeer
