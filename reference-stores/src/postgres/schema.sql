-- One storage: three tables and one function an operation.
--
-- A function call is one statement, which is one transaction: no lock is ever held while the server
-- waits for its client, so a client that dies or stops leaves nothing behind. Each function that
-- changes a box locks the box's row first. Whoever comes second waits, and reads what the first one
-- committed, because under READ COMMITTED every statement of a function sees what is committed when
-- it begins. So a box's messages become visible in the order of their numbers.

CREATE TABLE storage (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    kind text NOT NULL,
    version integer NOT NULL,
    name text NOT NULL
);

-- A row for every box ever written to, emptied or dropped, because its counters must go on where they
-- were. Names and owners are bytea: text holds no U+0000, and bytes have no collation to fold them.
CREATE TABLE boxes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope bytea NOT NULL,
    handle bytea NOT NULL,
    last_seq bigint NOT NULL DEFAULT 0,
    leases_granted bigint NOT NULL DEFAULT 0,
    lease_owner bytea, -- NULL where there is no lease; it may have expired where there is one
    lease_expiry bigint,
    lease_delivered bigint, -- the last seq that the claim delivered
    tombstoned boolean NOT NULL DEFAULT false
);

-- By digest, since an index takes no long names; every look-up compares the names themselves too.
CREATE UNIQUE INDEX box_by_name ON boxes (sha256(scope), sha256(handle));

CREATE TABLE messages (
    box bigint NOT NULL REFERENCES boxes,
    seq bigint NOT NULL,
    body bytea NOT NULL, -- JSON text; its escapes hold U+0000, and no encoding touches it
    PRIMARY KEY (box, seq)
);

CREATE FUNCTION locked_box(a_scope bytea, a_handle bytea) RETURNS SETOF boxes LANGUAGE sql AS $$
    SELECT * FROM boxes
    WHERE sha256(scope) = sha256(a_scope) AND sha256(handle) = sha256(a_handle)
        AND scope = a_scope AND handle = a_handle
    FOR UPDATE
$$;

-- The same, made first where it was never there.
CREATE FUNCTION made_box(a_scope bytea, a_handle bytea) RETURNS boxes LANGUAGE plpgsql AS $$
DECLARE
    b boxes;
BEGIN
    SELECT * INTO b FROM locked_box(a_scope, a_handle);
    IF NOT FOUND THEN
        INSERT INTO boxes (scope, handle) VALUES (a_scope, a_handle) ON CONFLICT DO NOTHING;
        -- STRICT: two names of one digest would find no row here, and must never share one.
        SELECT * INTO STRICT b FROM locked_box(a_scope, a_handle);
    END IF;
    RETURN b;
END
$$;

-- The lease's id: its storage, its box and its number within the box, so none is ever used twice.
CREATE FUNCTION lease_id(b boxes) RETURNS text LANGUAGE sql AS $$
    SELECT name || '.' || b.id || '.' || b.leases_granted FROM storage
$$;

CREATE FUNCTION is_held(b boxes, a_owner bytea, a_lease bytea, a_now bigint) RETURNS boolean
LANGUAGE sql AS $$
    SELECT coalesce(
        b.lease_owner = a_owner AND a_now < b.lease_expiry
            AND convert_to(lease_id(b), 'UTF8') = a_lease,
        false)
$$;

CREATE FUNCTION end_lease(a_box bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE boxes SET lease_owner = NULL, lease_expiry = NULL, lease_delivered = NULL
    WHERE id = a_box
$$;

-- The seq; NULL where the recipient is tombstoned.
CREATE FUNCTION append(a_scope bytea, a_handle bytea, a_body bytea, a_seq_max bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    b boxes := made_box(a_scope, a_handle);
BEGIN
    IF b.tombstoned THEN
        RETURN NULL;
    END IF;
    IF b.last_seq >= a_seq_max THEN
        RAISE EXCEPTION 'the box has used every seq there is';
    END IF;
    UPDATE boxes SET last_seq = last_seq + 1 WHERE id = b.id;
    INSERT INTO messages VALUES (b.id, b.last_seq + 1, a_body);
    RETURN b.last_seq + 1;
END
$$;

-- A row a message, each with the lease; none where the box is empty or another owner's.
CREATE FUNCTION claim(
    a_scope bytea, a_handle bytea, a_owner bytea, a_expiry bigint, a_most bigint, a_now bigint)
RETURNS TABLE (lease text, seq bigint, body bytea) LANGUAGE plpgsql AS $$
DECLARE
    b boxes;
    last bigint;
BEGIN
    SELECT * INTO b FROM locked_box(a_scope, a_handle);
    IF b.lease_owner IS NOT NULL AND a_now < b.lease_expiry THEN
        IF b.lease_owner <> a_owner THEN
            RETURN;
        END IF;
    ELSE
        SELECT max(m.seq) INTO last FROM (
            SELECT messages.seq FROM messages WHERE box = b.id ORDER BY messages.seq LIMIT a_most
        ) AS m;
        -- Nothing to deliver installs nothing: a lease on an empty box would lock out the next message.
        IF last IS NULL THEN
            RETURN;
        END IF;
        UPDATE boxes
        SET leases_granted = leases_granted + 1,
            lease_owner = a_owner, lease_expiry = a_expiry, lease_delivered = last
        WHERE id = b.id
        RETURNING * INTO b;
    END IF;
    RETURN QUERY
        SELECT lease_id(b), m.seq, m.body FROM messages AS m
        WHERE m.box = b.id AND m.seq <= b.lease_delivered ORDER BY m.seq;
END
$$;

-- How many messages went; NULL where the caller does not hold the lease.
CREATE FUNCTION ack(
    a_scope bytea, a_handle bytea, a_owner bytea, a_lease bytea, a_up_to bigint, a_now bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    b boxes;
    acked bigint;
BEGIN
    SELECT * INTO b FROM locked_box(a_scope, a_handle);
    IF NOT is_held(b, a_owner, a_lease, a_now) THEN
        RETURN NULL;
    END IF;
    DELETE FROM messages WHERE box = b.id AND seq <= least(a_up_to, b.lease_delivered);
    GET DIAGNOSTICS acked = ROW_COUNT;
    PERFORM end_lease(b.id);
    RETURN acked;
END
$$;

-- Whether the caller held the lease.
CREATE FUNCTION release(
    a_scope bytea, a_handle bytea, a_owner bytea, a_lease bytea, a_now bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    b boxes;
BEGIN
    SELECT * INTO b FROM locked_box(a_scope, a_handle);
    IF NOT is_held(b, a_owner, a_lease, a_now) THEN
        RETURN false;
    END IF;
    PERFORM end_lease(b.id);
    RETURN true;
END
$$;

-- The same. An expiry of 0 changes nothing.
CREATE FUNCTION renew(
    a_scope bytea, a_handle bytea, a_owner bytea, a_lease bytea, a_expiry bigint, a_now bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    b boxes;
BEGIN
    SELECT * INTO b FROM locked_box(a_scope, a_handle);
    IF NOT is_held(b, a_owner, a_lease, a_now) THEN
        RETURN false;
    END IF;
    IF a_expiry > 0 THEN
        UPDATE boxes SET lease_expiry = a_expiry WHERE id = b.id;
    END IF;
    RETURN true;
END
$$;

-- One SELECT is one consistent read; it waits for no lock.
CREATE FUNCTION peek(a_scope bytea, a_handle bytea) RETURNS TABLE (seq bigint, body bytea)
LANGUAGE sql STABLE AS $$
    SELECT m.seq, m.body FROM boxes JOIN messages AS m ON m.box = boxes.id
    WHERE sha256(scope) = sha256(a_scope) AND sha256(handle) = sha256(a_handle)
        AND scope = a_scope AND handle = a_handle
    ORDER BY m.seq
$$;

-- A box that somebody is using is left for the next time: only here are several rows locked at once,
-- and waiting for them could be a deadlock.
CREATE FUNCTION reap(a_now bigint) RETURNS void LANGUAGE sql AS $$
    SELECT end_lease(id) FROM (
        SELECT id FROM boxes WHERE lease_expiry <= a_now FOR UPDATE SKIP LOCKED
    ) AS expired
$$;

CREATE FUNCTION drop_box(a_scope bytea, a_handle bytea) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    b boxes;
    dropped bigint;
BEGIN
    SELECT * INTO b FROM locked_box(a_scope, a_handle);
    DELETE FROM messages WHERE box = b.id;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    PERFORM end_lease(b.id);
    RETURN dropped;
END
$$;

CREATE FUNCTION tombstone(a_scope bytea, a_handle bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    b boxes := made_box(a_scope, a_handle);
BEGIN
    UPDATE boxes SET tombstoned = true WHERE id = b.id;
END
$$;
