import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TimeZone;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.hudi.common.config.TypedProperties;
import org.joda.time.DateTimeZone;

/**
 * Makes keys with Apache Hudi's own generators. Every line of the input is one record with its configuration:
 * {"class", "config", "schema" (Avro), "record" (Avro's JSON), "zone"}; every line of the output is {"key", "partition"} or
 * {"error": {"class", "cause", "stage", "message"}}.
 */
public class Keys {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    PrintStream out = new PrintStream(System.out, false, "UTF-8");
    System.setOut(System.err); // what the classes print is no answer
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
    }
    out.flush();
  }

  private static ObjectNode answer(JsonNode request) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone(request.get("zone").asText()));
    DateTimeZone.setDefault(DateTimeZone.forTimeZone(TimeZone.getDefault()));
    Schema schema = new Schema.Parser().parse(request.get("schema").asText());
    GenericRecord record = new GenericDatumReader<GenericRecord>(schema)
        .read(null, DecoderFactory.get().jsonDecoder(schema, request.get("record").asText()));
    TypedProperties properties = new TypedProperties();
    request.get("config").fields().forEachRemaining((Map.Entry<String, JsonNode> e) -> properties.setProperty(e.getKey(), e.getValue().asText()));

    ObjectNode answer = JSON.createObjectNode();
    String stage = "construct";
    try {
      Object generator = Class.forName(request.get("class").asText()).getConstructor(TypedProperties.class).newInstance(properties);
      stage = "record_key";
      String key = (String) generator.getClass().getMethod("getRecordKey", GenericRecord.class).invoke(generator, record);
      stage = "partition_path";
      String partition = (String) generator.getClass().getMethod("getPartitionPath", GenericRecord.class).invoke(generator, record);
      return answer.put("key", key).put("partition", partition);
    } catch (InvocationTargetException e) {
      Throwable t = e.getCause();
      Throwable cause = t.getCause();
      answer.putObject("error").put("class", t.getClass().getSimpleName()).put("cause", cause == null ? "" : cause.getClass().getSimpleName())
          .put("stage", stage).put("message", String.valueOf(t.getMessage()));
      return answer;
    }
  }
}
