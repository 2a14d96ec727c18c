<?php
// What the clients in PHP share: the protocol of docs/protocol.md.

const NOT_SUPPORTED = 10, UNKNOWN = 13, NOT_OWNER = 20, HELD = 22;

interface Library
{
    /** A lock of that key that was granted; null: it is held. */
    public function acquire(string $key): ?object;

    public function release(object $lock): void;
}

final class Failure extends Exception
{
}

/** Answers requests until the input ends. `$connect` makes the Library of an `init`. */
function serve(callable $connect): void
{
    $library = null;
    $held = [];
    while (false !== $line = fgets(STDIN)) {
        $asked = json_decode($line, true)['body'];
        try {
            if ('init' === $asked['type']) {
                $library = $connect($asked);
            }
            $answer = answer($library, $held, $asked);
        } catch (Failure $failure) {
            $answer = ['type' => 'error', 'code' => $failure->getCode(), 'text' => $failure->getMessage()];
        } catch (Throwable $error) {
            $answer = ['type' => 'error', 'code' => UNKNOWN, 'text' => $error->getMessage()];
        }
        if (isset($asked['msg_id'])) {
            $answer['in_reply_to'] = $asked['msg_id'];
            echo json_encode(['src' => 'client', 'dest' => 'lockcheck', 'body' => $answer]), "\n";
        }
    }
}

function answer(?Library $library, array &$held, array $asked): array
{
    switch ($asked['type']) {
        case 'acquire':
            $lock = $library->acquire($asked['key']) ?? throw new Failure('held', HELD);
            $held[$asked['msg_id']] = $lock;
            break;
        case 'release':
            $lock = $held[$asked['acquire']] ?? throw new Failure('it was not acquired', NOT_OWNER);
            unset($held[$asked['acquire']]);
            $library->release($lock);
            break;
        case 'leave':
            unset($held[$asked['acquire']]);
            break;
        case 'init':
            break;
        default:
            throw new Failure('unknown request', NOT_SUPPORTED);
    }

    return ['type' => "{$asked['type']}_ok"];
}
