import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** Runs HDFS, one NameNode and one DataNode, in a folder and tells its port; ends with its standard input. */
public class MiniCluster {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, args[0]);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).format(true).build();
    cluster.waitActive();
    System.out.println("PORT " + cluster.getNameNodePort());
    System.out.flush();
    while (System.in.read() >= 0) {
    }
    System.exit(0);
  }
}
