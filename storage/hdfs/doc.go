// Package hdfs keeps objects in files of a Hadoop file system, by the NameNode's own protocol. It is built with the tag hdfs
// (go build -tags hdfs): few need it, and it makes a program 4 MB larger.
//
// # URLs and configuration
//
// hdfs://namenode:8020/folder names a NameNode, hdfs://nameservice/folder and hdfs:///folder what core-site.xml and
// hdfs-site.xml in HADOOP_CONF_DIR (or HADOOP_HOME/conf) say. The user is HADOOP_USER_NAME, then that of the process. Where
// the configuration asks for Kerberos the ticket cache that kinit filled is used (KRB5CCNAME, KRB5_CONFIG).
//
// # What a Put does
//
// A body is written to a hidden file beside its target ("._sluice_put_...") and then renamed over it, which is one step in
// the NameNode. IfAbsent first creates the target, empty, which can have one winner among all clients, Hadoop's too, and
// then renames the full file over it. The client library has no rename that fails where the target exists, so for the time
// of that one request readers see an empty object, and a process that dies just then leaves one. Hidden files of a process
// that died stay until somebody removes them.
package hdfs
