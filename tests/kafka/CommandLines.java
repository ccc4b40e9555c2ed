package kdeclare.test;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/** Runs command lines of Kafka's tools one after another: a JVM for each of them would take most of the time. */
public final class CommandLines {

    private static final class Ended extends RuntimeException {
        Ended() {
            super(null, null, false, false);
        }
    }

    /** The first one: some tools catch what their own exit throws here, and exit again. */
    private static Integer exitCode;

    /** A line is a main class and its arguments with tabs between; the answer is its exit code and what it said. */
    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> {
            if (exitCode == null) {
                exitCode = code;
            }
            throw new Ended();
        });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream stream = new PrintStream(said, true, "UTF-8");
            System.setOut(stream);
            System.setErr(stream);
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            answers.println(code + " " + Base64.getEncoder().encodeToString(said.toByteArray()));
            answers.flush();
        }
    }

    private static int run(String tool, String[] arguments) throws Exception {
        exitCode = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                throw thrown;
            }
        }
        return exitCode == null ? 0 : exitCode;
    }
}
