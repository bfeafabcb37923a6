/*
 * The commit protocol of kubesync as a model that spin explores in full: every interleaving, every crash, every lost answer.
 *
 * How to read this file if you have never seen Promela
 * ----------------------------------------------------
 *   proctype P(..) { .. }      a process. All processes run side by side; between two steps of one, any steps of the others may come.
 *   atomic { .. }  d_step { .. }   one step: nothing of any other process comes in between. One step is one call to
 *                              DynamoDB or Route 53 as that service executes it (or something local that nobody else can see).
 *   if :: g1 -> a :: g2 -> b fi    picks ANY branch whose guard holds: spin explores all of them. `else` holds when no other does.
 *   do .. od                   the same, for ever, until `break` or `goto`.
 *   guard -> ..                an expression alone waits until it is true.
 *   assert(c)                  spin stops and prints the way that led here when c is false.
 *
 * What makes it exhaustive without bounds on failures
 * ---------------------------------------------------
 *   A pause     is a process that is not scheduled for a while. Spin explores all schedules, so every pause of any length is in.
 *   A crash     is a pause that never ends: whatever holds after any prefix of a run holds after a crash there.
 *   Taken for dead: the next master may take the lease at any moment, whatever the holder is doing.
 *   A lost answer leaves a copy of the request "in the air"; it lands at any later moment, or never. Their number is unbounded.
 *   Begins anew: with ANEW, an actor may forget what it knows at any moment, and any number of times.
 *   Random ids  (batch ids) are drawn from a small pool, and only such as nobody remembers: as unique as 128 random bits.
 *
 * Sizes (-D): MASTERS sessions one after the other (the last does not crash), KEYS service keys with one record set each,
 * EVENTS in the cluster, FOREIGN acts of somebody else in the zone, REMOVALS of the cluster by a person. One cluster, one zone.
 * RELEASES=2: each session is of this release or of the one before.
 * DENIED times IAM stops to allow a name, or the journal. It may allow everything again at any time.
 * OWED: a zone may go on while the cluster has not closed a key of its last batch. The key then owes. (A key stands for a cluster here.)
 *
 * Each session runs two actors: its zone (process Zone) and its cluster (process Cluster). The session's own part, lease and fence,
 * is at the beginning of Zone. The zone sends the cluster one message at a time (`owed`), and the cluster's answer is that
 * nothing is owed any more.
 *
 * The table in README.md says which step stands for which function. Mechanisms can be removed with -D, see "mutations" there.
 */

#ifndef MASTERS
#define MASTERS 2
#endif
#ifndef KEYS
#define KEYS 1
#endif
#ifndef EVENTS
#define EVENTS 2
#endif
#ifndef FOREIGN
#define FOREIGN 0
#endif
#ifndef REMOVALS
#define REMOVALS 0
#endif
#ifndef ANEW
#define ANEW 0
#endif
#ifndef RELEASES
#define RELEASES 1
#endif
#ifndef OWED
#define OWED 0
#endif
#ifndef DENIED
#define DENIED 0
#endif
#ifndef VALUES
#define VALUES 2                    /* a key wants nothing (0) or one of so many values */
#endif

#define NB       (2 * MASTERS + 2)  /* batch ids that can be told apart at one time; `fresh` asserts that they suffice */
#define OTHER    (NB + 1)           /* a journal whose batch id nobody remembers: a swap, or a batch long closed */
#define ALIEN    9                  /* a value that no key ever wants */
#define AT(b, k) ((b) * KEYS + (k))

/* ---- the cluster: its events, newest last; want(e, k) is what key k asks for after event e ---- */
byte events;
byte hist[(EVENTS + 1) * KEYS];
#define want(e, k) hist[(e) * KEYS + (k)]

/* ---- DynamoDB ---- */
byte lease;                         /* epoch of the holder; the epoch counter is the same number */
bit  lease_clean = 1;               /* released clean (a lease that was never held counts as such) */
byte fence;                         /* epoch of the master that may write for the cluster */
byte checkpoint;                    /* all events up to here are durable */
byte intended[KEYS];
byte applied[KEYS];
bit  opened[KEYS];                  /* the durable work queue */
bit  conflict[KEYS];                /* a foreign set stands at the name: the claim was let go */
bit  inflight_exists;
byte inflight_epoch;                /* of the master that wrote it last: its batch may be an earlier one's */
byte inflight;                      /* id of the batch announced last, 0: cleared; its content is batch `inflight` below */
#if OWED
byte item_owes;                     /* the keys that the inflight item says owe (a bit each): what they had to close has landed .. */
byte item_value[KEYS];              /* .. and is this */
#endif

/* The cluster's configuration. */
#define REGISTERED 0
#define LEAVES     1                /* being removed; its record sets are retained */
#define GONE       2
#if REMOVALS
byte config;
#else
#define config REGISTERED
#endif

/* ---- the hosted zone ---- */
byte zone[KEYS];                    /* what stands at the key's name, 0: nothing */
bit  theirs[KEYS];                  /* ghost: a foreign actor made it, or a person retained it */
bit  touched[KEYS];                 /* ghost: a foreign actor took a set of ours away, and no resync has noticed */
byte journal;                       /* its batch id, 0: none yet */
byte journal_epoch;
#if DENIED
byte iam;                           /* what IAM denies: the name of a key (a bit each), or the journal (bit KEYS) */
#endif

/* ---- change batches ---- */
byte before[(NB + 1) * KEYS];       /* a unit: DELETE of this value (0: no DELETE) .. */
byte after[(NB + 1) * KEYS];        /* .. and CREATE of that one (0: no CREATE); equal: the key has no unit in the batch */
byte by[NB + 1];                    /* epoch of its master */
bit  fits[NB + 1];                  /* the journal that this batch deletes still stands */
bit  air[NB + 1];                   /* a copy whose answer was lost may still land */
bit  swap_air[MASTERS + 1];         /* the same for a swap of the journal alone, by master */

/* ---- masters ---- */
byte up[MASTERS + 1];               /* 1: fence raised, running; 2: ended */
byte sent[MASTERS + 1];             /* the batch that is under way; its zone repeats it unchanged */
byte found[MASTERS + 1];            /* the inflight batch that a settling zone has read */
bit  knows[MASTERS + 1];            /* the journal that the zone knows is the one that stands */
bit  recording[MASTERS + 1];        /* the cluster has recorded a part of a window */
byte wait[MASTERS + 1];             /* keys postponed after a refusal, until their retry (a bit each) */
#if RELEASES > 1
bit  former[MASTERS + 1];           /* this session is of the release before */
#define former_of(m) former[m]
#else
#define former_of(m) 0
#endif

/* ---- what the zone told the cluster, and the cluster has not answered yet ---- */
byte owed[MASTERS + 1];             /* keys that the cluster still has to close (a bit each) */
byte closing[MASTERS + 1];          /* .. of this batch */
bit  refused[MASTERS + 1];          /* .. which was refused; else it has landed */
#if OWED
byte late[MASTERS + 1];             /* keys that owe: the zone has gone on without them (a bit each) */
byte late_value[(MASTERS + 1) * KEYS];  /* .. and what landed of each */
#define owes_late(m) late[m]
#else
#define owes_late(m) 0
#endif
byte free[MASTERS + 1];             /* of a refused batch: nothing stands where a set was to be deleted */
byte alien[MASTERS + 1];            /* of a refused batch: a set stands where there should be none */
#if FOREIGN
byte missing[MASTERS + 1];          /* keys whose set was not on a page of the zone: to be mended */
#endif
#if REMOVALS
bit  parted[MASTERS + 1];           /* the answer to Forget: nothing is under way, and the inflight item is cleared */
#endif

/* ---- ghosts: what the invariants speak of ---- */
byte settled_epoch;                 /* the newest master whose zone has settled: older ones must change nothing any more */
bit  quiet;                         /* the last master has ended with nothing left to do */

/* -DONLY_HARM leaves only I1 and I3 to be checked: what a broken I2 leads to. */
#ifdef ONLY_HARM
#define WRITES(m)  skip
#define LANDS(e)   skip
#else
/* I2: nobody writes state under a newer fence, and after the end all is still. */
#define WRITES(m)  assert((m) >= fence); assert(!quiet)
/* I2 for the zone. */
#define LANDS(e)   assert((e) >= settled_epoch); assert(!quiet)
#endif

/* Actors of the release before do not begin anew. ANEW=2: only those of the second session do. */
#if ANEW == 2
#define begins_anew(m) (m == 2 && !former_of(m))
#else
#define begins_anew(m) (!former_of(m))
#endif

#ifdef NO_FENCE_CHECK
#define fenced_in(m) (true)
#else
#define fenced_in(m) (fence == (m))
#endif

#ifdef CLOSE_WITHOUT_COMPARING_BATCH
#define NO_COMPARISON 1
#else
#define NO_COMPARISON 0
#endif
#if defined(SWAP_BEFORE_CLOSING) || defined(SETTLE_WITHOUT_CLOSING)
#define CLOSES_FIRST 0
#else
#define CLOSES_FIRST 1
#endif
#ifdef ADOPT_EQUAL_SETS
#define ADOPTS 1
#else
#define ADOPTS 0
#endif
#ifdef UPSERT_BLINDLY
#define MUST_MATCH 0
#else
#define MUST_MATCH 1
#endif

/* The release before cleared the item when a batch was closed: it never looks whether it is cleared. */
#define cleared_for(m) (cleared || former_of(m))
#if OWED
#ifdef CLEAR_ALTHOUGH_A_KEY_OWES
#define nobody_owes (true)
#else
#define nobody_owes (!late[m])
#endif
#ifdef BATCH_OF_A_KEY_THAT_OWES
#define goes(k)     (true)
#else
#define goes(k)     (!has(late[m], k))
#endif
#else
#define nobody_owes (true)
#define goes(k)     (true)
#endif
#ifdef MEND_WITHOUT_CLEARING
#define may_mend(m) (true)
#else
#define may_mend(m) cleared_for(m)
#endif
#ifdef FORGET_WITHOUT_CLEARING
#define may_part(m) (true)
#else
#define may_part(m) cleared_for(m)
#endif
#if defined(END_CLEAN_WITHOUT_CLEARING)
#define may_end(m) (true)
#elif defined(END_CLEAN_ALTHOUGH_A_KEY_OWES)
#define may_end(m) (cleared_for(m) || !inflight)
#else
#define may_end(m) cleared_for(m)
#endif
#ifdef CLEAR_BEFORE_ALL_HAVE_CLOSED
#define may_clear(m) (true)
#else
#define may_clear(m) (!owed[m])
#endif

#define has(bits, k)  (((bits) >> (k)) & 1)
#define changes(b, k) (before[AT(b, k)] != after[AT(b, k)])

#if DENIED
#define not_allowed(k)   has(iam, k)
#define journal_denied   has(iam, KEYS)
#else
#define not_allowed(k)   (false)
#define journal_denied   (false)
#endif

/* The batches that masters remember: r, a bit for each. */
inline remember() {
	r = 0;
	x = 1;
	do
	:: x > MASTERS -> break
	:: else -> r = r | (1 << sent[x]) | (1 << found[x]) | (1 << closing[x]); x++
	od;
	x = 0
}

/* An id that nobody remembers. */
inline fresh(id) {
	remember();
	id = 1;
	do
	:: id <= NB && (journal == id || inflight == id || air[id] || has(r, id)) -> id++
	:: else -> break
	od;
	r = 0;
	assert(id <= NB)                /* else: raise NB, the model is too small */
}

inline empty_batch(b) {
	z = 0;
	do
	:: z == KEYS -> break
	:: else -> before[AT(b, z)] = 0; after[AT(b, z)] = 0; z++
	od;
	z = 0
}

/* -DALIKE: batches are numbered in the order in which they are remembered, so that states that differ only in these numbers look
 * equal. Ids are only ever compared. It is for the runs that visit every state: a trace with changing numbers is hard to read. */
#ifdef ALIKE
#define exchange(a, b)   w = a; a = b; b = w
#define renumber(id)     id = (id == n -> y : (id == y -> n : id))

/* The batch that `id` names gets number n, the lowest that is free, unless it has a lower one. y, z, w: scratch. */
inline number(id) {
	if
	:: id < n || id > NB
	:: id == n -> n++
	:: id > n && id <= NB ->
		y = id;
		z = 0;
		do
		:: z == KEYS -> break
		:: else ->
			exchange(before[AT(y, z)], before[AT(n, z)]);
			exchange(after[AT(y, z)], after[AT(n, z)]);
			z++
		od;
		exchange(by[y], by[n]);
		exchange(fits[y], fits[n]);
		exchange(air[y], air[n]);
		renumber(inflight);
		renumber(journal);
		z = 1;
		do
		:: z > MASTERS -> break
		:: else -> renumber(sent[z]); renumber(found[z]); renumber(closing[z]); z++
		od;
		y = 0; z = 0; w = 0;
		n++
	fi
}

inline number_all() {
	n = 1;
	number(inflight);
	number(journal);
	x = 1;
	do
	:: x > MASTERS -> break
	:: else -> number(sent[x]); number(found[x]); number(closing[x]); x++
	od;
	x = 0; n = 0
}
#define SCRATCH byte x, y, z, w, n; short r
#else
#define SCRATCH byte x, y, z; short r
#endif

/* Forget what nobody can ask for any more, so that equal states look equal. Changes no behaviour. */
inline tidy() {
	remember();
	y = 1;
	do
	:: y > NB -> break
	:: else ->
		if
		:: has(r, y) || (air[y] && journal != y)
		:: else ->
			if
			:: !air[y] ->
				by[y] = 0; fits[y] = 0;
				if
				:: inflight != y || (journal != y && !NO_COMPARISON) -> empty_batch(y)   /* it neither lands any more nor has it landed */
				:: else
				fi
			:: else
			fi;
			journal = (journal == y && inflight != y -> OTHER : journal)
		fi;
		y++
	od;
	y = 0; r = 0;
#ifdef ALIKE
	number_all()
#endif
}

/* The journal now says (id, epoch): whatever was to delete the old value can never land any more. */
inline journal_moves(id, epoch) {
	journal = id;
	journal_epoch = epoch;
#ifndef NO_JOURNAL_SWAP
	x = 1;
	do
	:: x > NB -> break
	:: else ->
#ifndef CLOSE_WITHOUT_COMPARING_BATCH
		if
		:: fits[x] && x != id -> empty_batch(x)         /* it can neither land nor be proven to have landed */
		:: else
		fi;
#endif
		fits[x] = 0; air[x] = 0; by[x] = 0; x++
	od;
	x = 1;
	do
	:: x > MASTERS -> break
	:: else -> knows[x] = 0; swap_air[x] = 0; x++
	od;
#endif
	x = 0
}

/* Whether Route 53 would take batch b now: all of it or nothing. `bad` are the keys at fault (a bit each). */
inline judge_batch(b, bad) {
	bad = 0;
	x = 0;
	do
	:: x == KEYS -> break
	:: else ->
		if
		:: MUST_MATCH && changes(b, x) && zone[x] != before[AT(b, x)] -> bad = bad | (1 << x)
		:: else
		fi;
		x++
	od;
	x = 0
}

/* Batch b lands. */
inline land(b) {
	LANDS(by[b]);
	x = 0;
	do
	:: x == KEYS -> break
	:: else ->
		if
		:: changes(b, x) ->
			assert(!(zone[x] && theirs[x]));    /* I3: a set that is not ours is never deleted or overwritten */
			zone[x] = after[AT(b, x)];
#if !defined(NO_JOURNAL_SWAP) && !defined(UNLANDED_IS_UNDONE)
			before[AT(b, x)] = !after[AT(b, x)];    /* only that it differs still matters: equal states look equal */
#endif
			theirs[x] = 0
		:: else
		fi;
		x++
	od;
	air[b] = 0;
	journal_moves(b, by[b])
}

/* The zone tells the cluster what became of batch id: the keys of `bits` are to be closed. */
inline tell(id, bits, was_refused) {
	owed[m] = bits;
	closing[m] = (owed[m] -> id : 0);
	refused[m] = was_refused && owed[m]
}

/* What is written into the inflight item carries the keys that owe at this moment. */
inline carry() {
#if OWED
	item_owes = late[m];
	x = 0;
	do
	:: x == KEYS -> break
	:: else -> item_value[x] = late_value[AT(m, x)]; x++
	od;
	x = 0
#else
	skip
#endif
}

/* The zone goes on without the keys that are not closed: they owe. */
inline go_on() {
#if OWED
	x = 0;
	do
	:: x == KEYS -> break
	:: else -> late_value[AT(m, x)] = (has(owed[m], x) -> after[AT(closing[m], x)] : late_value[AT(m, x)]); x++
	od;
	x = 0;
	late[m] = late[m] | owed[m];
	owed[m] = 0;
	answered()
#else
	skip
#endif
}
#if OWED
/* The inflight item says that key k owes, or the message that is left in the cluster's mailbox is one that it has obeyed before. */
#define said(k)      (!has(late[m] & ~item_owes, k) || applied[k] == late_value[AT(m, k)])
/* Not for a message that is left from before the zone began anew. */
#define may_go_on(m) (owed[m] && !refused[m] && !cleared && !former_of(m))
#endif

/* Key k owes nothing any more. */
inline owes_no_longer(k) {
	late[m] = late[m] & ~(1 << (k));
	late_value[AT(m, k)] = 0
}

/* The keys that have a unit in batch id. */
inline units_of(id, bits) {
	bits = 0;
	x = 0;
	do
	:: x == KEYS -> break
	:: else -> bits = bits | (changes(id, x) << x); x++
	od;
	x = 0
}

/* ---- the cluster: something changes ---- */
proctype Events() {
	byte x, y;
end:
	do
	:: atomic {
		events < EVENTS ->
		events++;
		x = 0;
		do
		:: x == KEYS -> break
		:: else -> want(events, x) = want(events - 1, x); x++
		od;
		x = 0;
		if
		:: true
#if KEYS > 1
		:: x = 1
#endif
		fi;
		if
		:: want(events, x) != 0 -> want(events, x) = 0
		:: want(events, x) != 1 -> want(events, x) = 1
#if VALUES > 1
		:: want(events, x) != 2 -> want(events, x) = 2
#endif
		fi;
		printf("event %d: key %d wants %d\n", events, x, want(events, x));
		x = 0
	}
	od
}

/* ---- the way to Route 53: copies of requests whose answers were lost land late ---- */
proctype Air() {
	SCRATCH;
	byte b, bad;
end:
	do
	:: atomic {
		if
		:: air[1] -> b = 1
		:: air[2] -> b = 2
		:: air[3] -> b = 3
		:: air[4] -> b = 4
#if MASTERS > 1
		:: air[5] -> b = 5
		:: air[6] -> b = 6
#endif
#if MASTERS > 2
		:: air[7] -> b = 7
		:: air[8] -> b = 8
#endif
		fi;
		d_step {
			judge_batch(b, bad);
			if
			:: !bad -> land(b); printf("batch %d lands late\n", b)
			:: else
			fi;
			tidy();
			b = 0; bad = 0
		}
	}
	:: atomic {
		if
		:: swap_air[1] -> b = 1
#if MASTERS > 1
		:: swap_air[2] -> b = 2
#endif
#if MASTERS > 2
		:: swap_air[3] -> b = 3
#endif
		fi;
		d_step {
			LANDS(b);
			swap_air[b] = 0;
			printf("the journal swap of master %d lands late\n", b);
			journal_moves(OTHER, b);
			tidy();
			b = 0
		}
	}
	od
}

#if FOREIGN
/* ---- somebody else with access to the zone ---- */
proctype Stranger() {
	byte acts, k;
end:
	do
	:: atomic {
		acts < FOREIGN ->
		acts++;
		if
		:: true
#if KEYS > 1
		:: k = 1
#endif
		fi;
		if
		:: zone[k] == 0 -> zone[k] = ALIEN; theirs[k] = 1; printf("a stranger creates a set at the name of key %d\n", k)
		/* Also a set that looks exactly like what the key wants. Where a set of ours was replaced by its twin nobody can tell
		 * them apart, Route 53 included: that one case is left out. */
		:: zone[k] == 0 && intended[k] && !applied[k] && !touched[k] ->
			zone[k] = intended[k]; theirs[k] = 1; printf("a stranger creates the very set that key %d wants\n", k)
		:: zone[k] && theirs[k] -> zone[k] = 0; theirs[k] = 0; printf("the stranger's set at the name of key %d goes\n", k)
		:: zone[k] && !theirs[k] -> zone[k] = 0; touched[k] = 1; printf("a stranger deletes our set of key %d\n", k)
		fi;
		k = 0
	}
	od
}
#endif

#if DENIED
/* ---- who manages the role: IAM denies a request as a whole if it holds a name that is not allowed ---- */
proctype Policies() {
	byte acts;
end:
	do
	:: atomic {
		acts < DENIED && !iam ->
		acts++;
		if
		:: iam = 1; printf("IAM denies the name of key 0\n")
#if KEYS > 1
		:: iam = 2; printf("IAM denies the name of key 1\n")
#endif
		:: iam = 1 << KEYS; printf("IAM denies the journal\n")
		fi
	}
	:: atomic { iam -> iam = 0; printf("IAM allows everything\n") }
	od
}
#endif

#if REMOVALS
/* ---- a person: removes the cluster with `retain`, and registers it again ---- */
proctype Person() {
	byte removals;
end:
	do
	:: atomic {
		config == REGISTERED && removals < REMOVALS ->
		removals++;
		config = LEAVES;
		printf("a person removes the cluster; its record sets are retained\n")
	}
	:: atomic { config == GONE -> config = REGISTERED; printf("a person registers the cluster again\n") }
	od
}
#endif

/* What the key wants now; open where the zone does not have it; a postponed key with news is due at once. */
inline record(k) {
	if
	:: intended[k] != want(seen, k) -> wait[m] = wait[m] & ~(1 << (k))
	:: else
	fi;
	intended[k] = want(seen, k);
	conflict[k] = conflict[k] && intended[k];
	opened[k] = (intended[k] != applied[k])
}

/* What landed moves `applied`; a key without a change left closes. */
inline moves_applied(k, value) {
	applied[k] = value;
	opened[k] = (intended[k] != applied[k]);
#if FOREIGN && !defined(MEND_WHAT_MOVED_MEANWHILE)
	missing[m] = missing[m] & ~(1 << (k))               /* what was seen before is old */
#endif
}

/* The tables know that the set is gone. From now on it must not be missing any more. */
inline noticed(k) {
	touched[k] = touched[k] && zone[k]
}

/* Key k of the batch that is owed: landed, gone, in conflict, or postponed. Refusals count only for what the key still wants. */
inline close_key(k) {
	if
	:: !refused[m] ->
#if defined(CLOSE_WHAT_IS_WANTED_NOW)
		moves_applied(k, intended[k]);
#else
		moves_applied(k, after[AT(closing[m], k)]);
#endif
		wait[m] = wait[m] & ~(1 << (k))
	:: refused[m] && has(free[m], k) -> moves_applied(k, after[AT(closing[m], k)]); noticed(k)
	:: refused[m] && has(alien[m], k) ->
		if
		:: applied[k] == before[AT(closing[m], k)] && intended[k] == after[AT(closing[m], k)] ->
			conflict[k] = 1; wait[m] = wait[m] | (1 << (k))
		:: else
		fi;
		opened[k] = (intended[k] != applied[k])
	:: else -> wait[m] = wait[m] | (1 << (k))
	fi;
	owed[m] = owed[m] & ~(1 << (k))
}

/* The answer: all keys of the batch are closed. */
inline answered() {
	if
	:: !owed[m] -> closing[m] = 0; refused[m] = 0; free[m] = 0; alien[m] = 0; tidy()
	:: else
	fi
}

#if KEYS > 1
#define nothing_known (!(intended[0] || applied[0] || opened[0] || conflict[0] || intended[1] || applied[1] || opened[1] || conflict[1]))
#else
#define nothing_known (!(intended[0] || applied[0] || opened[0] || conflict[0]))
#endif

/* The cluster forgets key k; what stands in the zone stays there. */
inline forget_key(k) {
	intended[k] = 0; applied[k] = 0; opened[k] = 0; conflict[k] = 0
}

/* From now on its set is not ours. */
inline retained(k) {
	theirs[k] = (zone[k] != 0);
	touched[k] = 0
}

/* A session may not have heard of the removal yet. */
#if REMOVALS
#define listens       (config == REGISTERED || (config == LEAVES && !parted[m]))
#else
#define listens       (true)
#endif

/* ---- a session's cluster: reads events and makes them durable; closes its keys; mends them; is removed ---- */
proctype Cluster(byte m) {
	SCRATCH;
	byte k, seen, place;
#ifdef HEED_OLD_MESSAGES
	byte old_value; bit old;
#endif
	/* from the checkpoint as read after the fence was raised */
end0:
	d_step { up[m] -> place = checkpoint }
end:
	do
	:: atomic { up[m] == 2 -> goto over }

	/* ---- closing: each key in a transaction of its own. The release before closed all of them in one, and cleared the item. ---- */
	:: atomic {
		owed[m] ->
#if KEYS > 1
		if
		:: has(owed[m], 0)
		:: has(owed[m], 1) && !(former_of(m) && has(owed[m], 0)) -> k = 1
		fi;
#endif
		if
		:: !refused[m] && !former_of(m) && applied[k] == after[AT(closing[m], k)] ->
			/* closed before: left as it is */
			d_step { owed[m] = owed[m] & ~(1 << k); wait[m] = wait[m] & ~(1 << k); answered(); k = 0 }
		:: else ->
			if
			:: fenced_in(m) ->
				if
				:: refused[m] -> printf("master %d closes key %d of batch %d, which was refused\n", m, k, closing[m])
				:: else -> printf("master %d closes key %d of batch %d, which has landed\n", m, k, closing[m])
				fi;
				d_step {
					WRITES(m);
					close_key(k);
					if
					:: former_of(m) ->
#if KEYS > 1
						if
						:: owed[m] -> close_key(1)
						:: else
						fi;
#endif
						if
						:: !refused[m] -> inflight = 0; inflight_epoch = m; carry()
						:: else
						fi
					:: else
					fi;
					answered();
					k = 0
				}
			:: else -> goto lost
			fi
		fi
	}

#if OWED
	/* ---- the same for a key that owes: the zone has gone on without it ---- */
	:: atomic {
		late[m] ->
#if KEYS > 1
		if
		:: has(late[m], 0)
		:: has(late[m], 1) -> k = 1
		fi;
#endif
		if
		:: applied[k] == late_value[AT(m, k)] -> d_step { wait[m] = wait[m] & ~(1 << k); owes_no_longer(k); k = 0 }
		:: else ->
			if
			:: fenced_in(m) ->
				printf("master %d closes key %d, which owed, at last: it has %d now\n", m, k, late_value[AT(m, k)]);
				d_step {
					WRITES(m);
					moves_applied(k, late_value[AT(m, k)]);
					wait[m] = wait[m] & ~(1 << k);
					owes_no_longer(k);
					k = 0
				}
			:: else -> goto lost
			fi
		fi
	}
#endif

	/* ---- recording: the window closes, with everything up to some event, merged. It is durable with its last transaction. ---- */
	:: atomic {
		up[m] == 1 && !recording[m] && place < events && listens ->
		seen = place + 1;
		do
		:: seen < events -> seen++
		:: break
		od;
		if
		:: fenced_in(m)
		:: else -> goto lost
		fi;
#ifdef CHECKPOINT_BEFORE_RECORD
		printf("master %d moves the checkpoint to %d\n", m, seen);
		d_step { WRITES(m); checkpoint = seen; recording[m] = 1 }
	}
	:: atomic {
		recording[m] ->
		if
		:: fenced_in(m)
		:: else -> goto lost
		fi;
#endif
#if KEYS > 1
		/* more than one transaction; keys whole, checkpoints in the last */
		printf("master %d records key 0 as of event %d, no checkpoint yet\n", m, seen);
		d_step { WRITES(m); record(0); recording[m] = 1 }
	}
	:: atomic {
		recording[m] ->
		if
		:: fenced_in(m)
		:: else -> goto lost
		fi;
#endif
		printf("master %d records up to event %d, checkpoint with it\n", m, seen);
		d_step {
			WRITES(m);
			record(KEYS - 1);
			checkpoint = seen;
			place = seen; seen = 0;
			recording[m] = 0
		}
	}

#if FOREIGN
	/* ---- mending without a batch: a set that was missing on a page is known to be gone. Any time after the page. ---- */
	:: atomic {
		missing[m] ->
#if KEYS > 1
		if
		:: has(missing[m], 0)
		:: has(missing[m], 1) -> k = 1
		fi;
#endif
		if
		:: fenced_in(m) ->
			printf("master %d mends key %d: its set is gone\n", m, k);
			d_step {
				WRITES(m);
				moves_applied(k, 0);
				missing[m] = missing[m] & ~(1 << k);
				noticed(k);
				k = 0
			}
		:: else -> goto lost
		fi
	}
#endif

#if REMOVALS
	/* ---- removal: every key is emptied, the zone parts, and what came back meanwhile is emptied again ---- */
	:: atomic {
		up[m] == 1 && config == LEAVES && !recording[m] && !nothing_known ->
		if
		:: fenced_in(m) ->
			printf("master %d empties the keys of the cluster\n", m);
			d_step {
				WRITES(m);
				forget_key(0);
#if KEYS > 1
				forget_key(1);
#endif
#if FOREIGN
				missing[m] = 0;
#endif
				wait[m] = 0
			}
		:: else -> goto lost
		fi
	}
	:: atomic {
#ifdef FORGET_WITHOUT_ASKING
		up[m] == 1 && config == LEAVES && !recording[m] && nothing_known ->
#else
		up[m] == 1 && config == LEAVES && !recording[m] && nothing_known && parted[m] ->
#endif
		if
		:: fenced_in(m) ->
			printf("master %d forgets the cluster\n", m);
			d_step {
				WRITES(m);
				config = GONE; checkpoint = 0; place = 0; parted[m] = 0;
				retained(0);
#if KEYS > 1
				retained(1)
#endif
			}
		:: else -> goto lost
		fi
	}
#endif

#if ANEW
	/* ---- it begins anew: the window is dropped. What it owes stands in its mailbox still. ---- */
	:: atomic {
		recording[m] && begins_anew(m) ->
		printf("the cluster of master %d begins anew\n", m);
		recording[m] = 0; seen = 0; place = checkpoint
	}
#endif
#ifdef HEED_OLD_MESSAGES
	:: atomic {
		owed[m] && !refused[m] && !old -> old = 1; old_value = after[AT(closing[m], 0)]
	}
	:: atomic {
		old && !owed[m] && up[m] == 1 && fenced_in(m) ->
		printf("master %d closes key 0 again, from an old message: %d\n", m, old_value);
		d_step { WRITES(m); moves_applied(0, old_value); old_value = 0; old = 0 }
	}
#endif
	od;
lost:                               /* a newer fence */
	atomic { k = 0 };
over:
	atomic {
		up[m] == 2 ->
		place = 0; seen = 0; recording[m] = 0; wait[m] = 0;
#if FOREIGN
		missing[m] = 0;
#endif
#if REMOVALS
		parted[m] = 0;
#endif
#if OWED
		d_step {
			owes_no_longer(0);
#if KEYS > 1
			owes_no_longer(1)
#endif
		}
#endif
		d_step { owed[m] = 0; answered() }
	}
}

/* While the cluster leaves, sets are only created, until the zone has parted. */
#if REMOVALS
#define wished(k)     (config == REGISTERED || (config == LEAVES && !parted[m] && !applied[k]))
#else
#define wished(k)     (true)
#endif
#define due(k)        (opened[k] && !conflict[k] && intended[k] != applied[k] && !has(wait[m], k) && !has(owed[m], k) && goes(k) && wished(k))
#define held_up(k)    (conflict[k] && zone[k] || has(wait[m], k) && (zone[k] != applied[k] || not_allowed(k)))
#define helps(k)      (has(wait[m], k) && !conflict[k] && zone[k] == applied[k] && !not_allowed(k))
#define drifted(k)    (applied[k] && !zone[k] && !has(missing[m], k))
#define done_with(k)  (!opened[k] || held_up(k))
#if FOREIGN
#define mended        (!missing[m])
#else
#define mended        (true)
#endif
#if KEYS > 1
#define any_due       (due(0) || due(1))
#define any_helps     (helps(0) || helps(1))
#define any_drifted   (drifted(0) || drifted(1))
#define keys_done     (done_with(0) && done_with(1))
#else
#define any_due       due(0)
#define any_helps     helps(0)
#define any_drifted   drifted(0)
#define keys_done     done_with(0)
#endif
#define all_done      (!recording[m] && !owed[m] && !owes_late(m) && mended && (config == GONE || config == REGISTERED && checkpoint == EVENTS && keys_done))
#if FOREIGN && REMOVALS
#define clearing_helps (any_drifted || config == LEAVES)
#elif FOREIGN
#define clearing_helps (any_drifted)
#elif REMOVALS
#define clearing_helps (config == LEAVES)
#else
#define clearing_helps (false)
#endif
/* A newer master's journal, or one of our own epoch although the inflight item does not say that we wrote. */
#ifdef SWAP_UNANNOUNCED
#define beyond_us     (journal_epoch > m)
#else
#define beyond_us     (journal_epoch > m || (journal_epoch == m && !announced))
#endif

/* What IAM says to the batch under way. A zone that is denied as a whole is blocked: it does nothing else until the journal is allowed. */
#if DENIED
#if KEYS > 1
#define units_denied  (not_allowed(0) && changes(sent[m], 0) || not_allowed(1) && changes(sent[m], 1))
#else
#define units_denied  (not_allowed(0) && changes(sent[m], 0))
#endif
#define is_denied     (journal_denied || !alone && units_denied)
#define is_blocked    (alone && !denied || former_of(m))
#define no_denial     alone = 0; denied = 0
#else
#define is_denied     (false)
#define no_denial     skip
#endif
/* Mutations of the batch that is the journal alone: the inflight item has the units that were denied. */
#if DENIED && (defined(ALONE_KEEPS_THE_BATCH) || defined(ALONE_IS_ANNOUNCED_WITH_UNITS))
#define ALONE_HAS_UNITS
#define may_lose_answer (!alone)
#else
#define may_lose_answer (true)
#endif

/* I1, when the last session has nothing left to do. */
inline check_quiet(k) {
	if
#if REMOVALS
	:: config == GONE ->
#ifndef ONLY_HARM
		assert(!intended[k] && !applied[k] && !opened[k]);  /* what is forgotten stays forgotten */
#endif
		skip
	:: config == REGISTERED ->
#else
	:: true ->
#endif
		assert(intended[k] == want(EVENTS, k));             /* no event was lost */
		if
		:: opened[k] ->                                     /* only somebody else's set keeps a key open, or IAM. Ours stays as it is. */
			assert(touched[k] || (zone[k] && theirs[k]) || (not_allowed(k) && applied[k] == zone[k]))
		:: else ->
			assert(applied[k] == intended[k]);
			assert(touched[k] || (applied[k] == 0 && theirs[k]) || (zone[k] == applied[k] && !theirs[k]))
		fi
	fi
}

/* ---- a session: lease, fence, and its one zone ---- */
proctype Zone(byte m) {
	SCRATCH;
	byte k, b, bad;
	bit clean, journal_read, unknown;
	bit announced;                  /* the zone knows that the inflight item has this master's epoch */
#if DENIED
	bit alone;                      /* the batch under way is the journal alone */
	byte denied;                    /* .. since IAM denied a batch of these keys (a bit each) */
#endif
	bit cleared;                    /* the zone knows that the inflight item names no batch, and that nobody owes by it */
#if OWED
	bit closed;                     /* while settling: the batch that the item names has landed, and was told to the cluster */
#endif
#ifdef READ_BEFORE_FENCE
	bit exists;
#endif
#ifdef SWAP_BEFORE_CLOSING
	bit proven;
#endif

	/* The lease: released, expired, or so it seems. One write, conditional on the renewal that was read. */
	d_step {
		lease == m - 1 ->
		lease = m;
		clean = lease_clean;
		lease_clean = 0;
		printf("master %d takes the lease; released clean before: %d\n", m, clean)
	}
#ifdef READ_BEFORE_FENCE
	atomic { exists = inflight_exists; found[m] = inflight }
#define EXISTS exists
#else
#define EXISTS inflight_exists
#endif
	/* The fence goes up, and only up, before anything is read. */
	atomic {
		if
		:: fence < m ->
			WRITES(m);
			fence = m;
			up[m] = 1;
			printf("master %d raises the fence\n", m);
			if
			:: clean -> cleared = 1; settled_epoch = m; goto idle
			:: else
			fi
		:: else -> goto lost
		fi
	}

	/* ---- settling: after an unclean end, and where this zone begins anew ---- */
begin:
	atomic {
		clean = 0;
		if
		:: !EXISTS ->                                           /* nothing was ever sent */
			printf("master %d finds no inflight item: nothing to settle\n", m);
			settled_epoch = (settled_epoch < m -> m : settled_epoch);
			cleared = 1;
			goto idle
		:: else ->
#ifndef SETTLE_WHAT_A_NEWER_MASTER_SENT
			if
			:: inflight_epoch > m -> goto lost                  /* written after this master was fenced out */
			:: else
			fi;
#endif
#ifndef READ_BEFORE_FENCE
			found[m] = inflight;
#endif
#ifndef OWN_EPOCH_IS_TAKEN_FOR_NEWER
			announced = (inflight_epoch == m);
#endif
			cleared = !found[m];
#if OWED
#if RELEASES > 1 && !defined(OLD_RELEASE_TAKES_THE_ITEM)
			if
			:: former_of(m) && item_owes ->
				printf("master %d cannot read the inflight item: it leaves the zone alone\n", m);
				found[m] = 0; cleared = 0; announced = 0; d_step { tidy() };
				goto alone
			:: else
			fi;
#endif
			/* what the item says that is owed is closed in any case; it may be in the cluster's mailbox already */
			d_step {
				closed = 0;
				cleared = cleared && !item_owes;
				x = 0;
				do
				:: x == KEYS || former_of(m) -> break
				:: else ->
#ifdef ALIKE
					assert(!has(item_owes, x) || !has(late[m], x) || late_value[AT(m, x)] == item_value[x]);
#endif
					late_value[AT(m, x)] = (has(item_owes, x) -> item_value[x] : late_value[AT(m, x)]);
					late[m] = late[m] | (has(item_owes, x) << x);
					x++
				od;
				x = 0
			}
#endif
			printf("master %d settles; inflight names batch %d\n", m, found[m])
		fi
	}
settle:
	atomic {
		if
		:: beyond_us -> goto lost
		:: else -> knows[m] = 1; journal_read = 1
		fi;
		if
		:: CLOSES_FIRST && found[m] && (journal == found[m] || NO_COMPARISON) ->
			/* it had landed: its keys are closed before the swap takes the proof away */
			printf("master %d reads the journal: batch %d landed\n", m, found[m]);
			d_step {
				units_of(found[m], b);
#ifdef CLOSE_KEYS_WITHOUT_A_UNIT
				b = (b -> (1 << KEYS) - 1 : 0);
#endif
#ifdef ONE_CLOSED_KEY_CLOSES_ITS_BATCH
				x = 0;
				do
				:: x == KEYS -> break
				:: else ->
					if
					:: has(b, x) && applied[x] == after[AT(found[m], x)] -> b = 0
					:: else
					fi;
					x++
				od;
				x = 0;
#endif
				tell(found[m], b, 0);
#if OWED
				x = 0;
				do
				:: x == KEYS -> break
				:: else ->
					if
					:: has(b, x) -> owes_no_longer(x)           /* the same message, of the zone before it began anew */
					:: else
					fi;
					x++
				od;
				x = 0;
				closed = 1;
#endif
				found[m] = 0; b = 0;
				cleared = former_of(m); announced = announced || former_of(m);  /* in the transaction that closes */
				tidy()
			}
		:: else ->
#if OWED
#ifdef ALIKE
			assert(closed || fence > m || said(0));
#if KEYS > 1
			assert(closed || fence > m || said(1));
#endif
#endif
#ifdef CLOSE_OWED_ONLY_WITH_THE_BATCH
			if
			:: found[m] -> late[m] = 0
			:: else
			fi;
#endif
#endif
			goto swap
		fi
	}
	atomic {
		if
		:: !owed[m]
#if OWED
		:: may_go_on(m) ->
			printf("master %d settles on: keys %d owe (a bit for each)\n", m, owed[m]);
			d_step { go_on() }
#endif
		:: fence > m -> goto lost
#if ANEW
		:: begins_anew(m) -> goto anew
#endif
		fi
	}
swap:
#if OWED && !defined(SWAP_BEFORE_WHO_OWES_IS_WRITTEN)
	/* The swap takes the proof away that the item's batch has landed: now the item itself says who owes. A batch without that proof
	 * stays in the item. It may land until the swap. */
	atomic {
		if
#ifdef WRITE_WHO_OWES_WITHOUT_PROOF
		:: late[m] && !cleared ->
#else
		:: late[m] && closed ->
#endif
			if
			:: fenced_in(m) ->
				printf("master %d writes inflight: no batch, keys %d owe (a bit for each)\n", m, late[m]);
				d_step { WRITES(m); inflight = 0; inflight_epoch = m; announced = 1; closed = 0; carry(); tidy() }
			:: else -> goto lost
			fi
		:: else
		fi
	}
#endif
#ifndef NO_SWAP_AT_UNCLEAN_TAKEOVER
#ifndef SWAP_UNANNOUNCED
	/* the item tells of every change of the journal before it is made */
	atomic {
		if
		:: announced
		:: else ->
			if
			:: fenced_in(m) ->
				printf("master %d announces its swap of the journal\n", m);
				d_step { WRITES(m); inflight_epoch = m; announced = 1; carry(); tidy() }
			:: else -> goto lost
			fi
		fi
	}
#endif
end_swap:
	atomic {
		if
#if DENIED && defined(DENIED_SWAP_IS_DONE)
		:: journal_denied -> skip
#endif
		:: !journal_denied ->                                   /* answered. Else the zone is blocked: this is tried again. */
			if
			:: knows[m] ->
#ifdef SWAP_BEFORE_CLOSING
				proven = (found[m] && journal == found[m]);
#endif
				printf("master %d swaps the journal\n", m);
				d_step { LANDS(m); journal_moves(OTHER, m); knows[m] = 1; tidy() }
			:: else -> goto settle                              /* refused: somebody's late batch came first */
			fi
		:: knows[m] && !swap_air[m] ->                          /* no answer */
			printf("master %d sends a swap of the journal, no answer\n", m);
			swap_air[m] = 1; goto settle
#if ANEW
		:: begins_anew(m) -> goto anew
#endif
		fi;
		settled_epoch = m
	}
#else
	settled_epoch = m;
#endif
#ifdef SWAP_BEFORE_CLOSING
	atomic {
		if
		:: proven ->
			d_step { proven = 0; units_of(found[m], b); tell(found[m], b, 0); b = 0 }
		:: else
		fi
	}
	atomic {
		if
		:: !owed[m]
		:: fence > m -> goto lost
#if ANEW
		:: begins_anew(m) -> goto anew
#endif
		fi
	}
#endif
	/* What has not landed by now never will. What has landed is closed. The item names neither any more. */
	atomic {
		if
		:: cleared
		:: else ->
			if
			:: fenced_in(m) ->
				if
				:: found[m] -> printf("master %d clears inflight: batch %d never landed\n", m, found[m])
				:: else -> printf("master %d clears inflight: its batch is closed\n", m)
				fi;
				d_step {
					WRITES(m);
#ifdef UNLANDED_IS_UNDONE
					x = 0;
					do
					:: x == KEYS -> break
					:: else ->
						if
						:: found[m] && changes(found[m], x) -> moves_applied(x, before[AT(found[m], x)])
						:: else
						fi;
						x++
					od;
					x = 0;
#endif
					inflight = 0; inflight_epoch = m; announced = 1; found[m] = 0; cleared = nobody_owes; carry(); tidy()
#if OWED
					closed = 0
#endif
				}
			:: else -> goto lost
			fi
		fi
	}

	/* ---- while no batch is under way ---- */
idle:
	do
#ifdef GO_ON_BEFORE_ALL_HAVE_CLOSED
	:: atomic { any_due -> break }
#else
	:: atomic { !owed[m] && any_due -> break }
#endif
#if OWED
	/* somebody takes long to close: the zone goes on */
	:: atomic {
		may_go_on(m) ->
		printf("master %d goes on: keys %d owe (a bit for each)\n", m, owed[m]);
		d_step { go_on() }
	}
#endif
	/* the lease is lost, or the cluster met a newer fence: the session ends, and not clean */
	:: atomic { fence > m -> goto lost }
#if ANEW
	:: atomic { begins_anew(m) && !(m == MASTERS && all_done) -> goto anew }
#endif
	/* retry_at of a postponed key has come. The last session need not try in vain. */
	:: atomic { wait[m] && (m < MASTERS || any_helps) -> wait[m] = 0 }
#if FOREIGN
	/* a name in conflict is read again, and claimed again where it is free */
	:: atomic {
		if
		:: !owed[m] && conflict[0] && zone[0] == 0 -> k = 0
#if KEYS > 1
		:: !owed[m] && conflict[1] && zone[1] == 0 -> k = 1
#endif
		fi }
		atomic {
			if
			:: fenced_in(m) ->
				printf("master %d claims the name of key %d again: it was free\n", m, k);
				d_step {
					WRITES(m);
					conflict[k] = 0;
					opened[k] = (intended[k] != applied[k]);
					wait[m] = wait[m] & ~(1 << k);
					k = 0
				}
			:: else -> goto lost
			fi
		}
	/* a full resync reads a page of the zone, and the cluster compares it. The item was cleared before. */
	:: atomic {
		!owed[m] && !owes_late(m) && any_drifted && may_mend(m) ->
		printf("master %d reads a page of the zone\n", m);
		d_step {
			missing[m] = missing[m] | drifted(0);
#if KEYS > 1
			missing[m] = missing[m] | (drifted(1) << 1)
#endif
		}
	}
#endif
	/* the inflight item is cleared, by a write of the zone's own */
	:: atomic {
		!cleared_for(m) && may_clear(m) && (m < MASTERS || clearing_helps) ->
		if
		:: fenced_in(m) ->
			printf("master %d clears inflight\n", m);
			d_step {
				WRITES(m);
				inflight = 0; inflight_epoch = m; announced = 1; cleared = nobody_owes; carry();
#if OWED && defined(CLEAR_DROPS_WHO_OWES)
				item_owes = 0;
#endif
				tidy()
			}
		:: else -> goto lost
		fi
	}
#if REMOVALS
	/* Forget: nothing of the cluster is under way, and nothing in the item can bring a key back */
	:: atomic {
		config == LEAVES && !parted[m] && !owed[m] && !owes_late(m) && may_part(m) ->
		printf("master %d: the zone has parted with the cluster\n", m);
		parted[m] = 1
	}
#endif
	/* all recorded, nothing under way: released clean. The last session ends when nothing is left to do. */
	:: atomic {
		m < MASTERS && !recording[m] && !owed[m] && may_end(m) ->
		up[m] = 2;
		printf("master %d ends clean\n", m);
		lease_clean = (lease == m -> 1 : lease_clean);
		goto done
		}
	:: atomic {
		m == MASTERS && all_done ->
		printf("master %d has nothing left to do\n", m);
		d_step {
			check_quiet(0);
#if KEYS > 1
			check_quiet(1);
#endif
			up[m] = 2;
			quiet = 1
		}
		goto done
		}
	od;

	/* Any of the due units (limits and halves decide which), as the cluster wished them last. What follows is later: by then
	 * the wishes may be old. */
	atomic {
		fresh(b);
		sent[m] = b; b = 0;
		by[sent[m]] = m;
		k = 0;
		do
		:: k == KEYS -> break
		:: else ->
			if
			:: due(k) ->
				before[AT(sent[m], k)] = applied[k]; after[AT(sent[m], k)] = intended[k];
				printf("master %d makes batch %d: key %d from %d to %d\n", m, sent[m], k, applied[k], intended[k])
			:: KEYS > 1
			:: !due(k)
			fi;
			k++
		od;
		k = 0;
		if
		:: journal_read -> fits[sent[m]] = knows[m]; goto announce
		:: else
		fi
	}
	/* the journal (read once; afterwards this zone moves it), and the swap built from it */
	atomic {
		if
		:: beyond_us -> goto lost
		:: else -> knows[m] = 1; journal_read = 1
		fi;
		fits[sent[m]] = knows[m]
	}
	/* the batch is announced: this replaces what the inflight item said */
announce:
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d writes inflight: batch %d\n", m, sent[m]);
			d_step {
				WRITES(m);
				inflight_exists = 1; inflight_epoch = m; announced = 1; cleared = 0;
#ifndef NO_INFLIGHT
				inflight = sent[m];
#endif
				carry();
#if OWED && defined(ANNOUNCE_WITHOUT_WHO_OWES)
				item_owes = 0;
#endif
				unknown = 0;
				tidy()
			}
		:: else -> goto lost
		fi
	}
#ifdef GO_ON_BEFORE_ALL_HAVE_CLOSED
	atomic {
		if
		:: !owed[m]
		:: fence > m -> goto lost
#if ANEW
		:: begins_anew(m) -> goto anew
#endif
		fi
	}
#endif
send:
end_send:
	atomic {
		if
#if DENIED
		:: is_denied && !is_blocked -> goto judge_denial
#if REMOVALS
		/* Forget: the item names nothing of the cluster any more, though IAM denied a batch of it */
		:: alone && config == LEAVES && !parted[m] && !owes_late(m) ->
			printf("master %d: the zone has parted with the cluster\n", m);
			parted[m] = 1; goto send
#endif
#endif
		:: !is_denied ->                                        /* answered */
#if DENIED && defined(ALONE_HAS_UNITS)
			if
			:: alone && fits[sent[m]] ->
				printf("master %d sends the journal alone: landed\n", m);
				d_step { LANDS(m); journal_moves(sent[m], m); knows[m] = 1; tidy() };
				goto landed
			:: else
			fi;
#endif
			d_step {
				judge_batch(sent[m], bad);
				if
				:: fits[sent[m]] && !bad -> land(sent[m]); knows[m] = 1; b = 1
				:: else
				fi;
				tidy()
			};
			if
			:: b -> printf("master %d sends batch %d: landed\n", m, sent[m]); b = 0; goto landed
			:: else -> printf("master %d sends batch %d: refused\n", m, sent[m])
			fi
		:: may_lose_answer && (!unknown || (fits[sent[m]] && !air[sent[m]])) ->  /* no answer: a copy lands now, later or never */
			printf("master %d sends batch %d: no answer, a copy may be under way\n", m, sent[m]);
			air[sent[m]] = air[sent[m]] || fits[sent[m]];
#ifdef CLEAN_WITH_AN_UNKNOWN_OUTCOME
			if
			:: m < MASTERS && lease == m && !recording[m] ->
				printf("master %d ends clean\n", m);
				lease_clean = 1; up[m] = 2; sent[m] = 0; d_step { tidy() };
				goto done
			:: true
			fi;
#endif
#ifdef RETRY_NOT_SAME_BATCH
			sent[m] = 0; d_step { tidy() };
			goto idle
#else
			unknown = 1;
			goto send
#endif
#if ANEW
		:: begins_anew(m) -> goto anew
#endif
		fi
	}
	/* refused: what does the journal say? */
	atomic {
		if
		:: journal_epoch > m -> goto lost
		:: journal_epoch <= m && journal == sent[m] ->
			printf("master %d reads the journal: batch %d had landed\n", m, sent[m]);
			knows[m] = 1; goto landed
		:: else ->
			if
			:: !fits[sent[m]] ->                                /* the journal had moved: again, with the journal as it is */
				printf("master %d reads the journal: it had moved, batch %d is dropped\n", m, sent[m]);
				knows[m] = 1;
				sent[m] = 0; bad = 0; unknown = 0; no_denial; d_step { tidy() };
				goto idle
			:: else
			fi
		fi;
#ifndef JUDGE_WITH_A_COPY_IN_THE_AIR
		/* an earlier copy may still land: shut it out before anything is concluded from this refusal */
		if
		:: unknown ->
			printf("master %d settles batch %d before it judges\n", m, sent[m]);
			found[m] = sent[m]; sent[m] = 0; bad = 0; unknown = 0; goto settle
		:: else
		fi
#endif
	}
	/* Read what stands at the names that were complained about, and tell the cluster: conflict, landed after all, or postponed.
	 * The others go again. */
	atomic {
		k = 0;
		do
		:: k == KEYS -> break
		:: else ->
			if
			:: has(bad, k) && before[AT(sent[m], k)] == 0 && zone[k] ->
				if
				:: ADOPTS && zone[k] == after[AT(sent[m], k)] -> free[m] = free[m] | (1 << k)
				:: else -> alien[m] = alien[m] | (1 << k)
				fi
			:: has(bad, k) && after[AT(sent[m], k)] == 0 && zone[k] == 0 -> free[m] = free[m] | (1 << k)
			:: else
			fi;
			k++
		od;
		k = 0;
		printf("master %d looks at the culprits of batch %d: foreign %d, gone %d (a bit for each key)\n", m, sent[m], alien[m], free[m]);
		d_step { tell(sent[m], bad, 1); bad = 0; sent[m] = 0; unknown = 0; tidy() }
	}
	goto idle;

#if DENIED
judge_denial:
	atomic {
		if
#ifndef DENIED_WITH_A_COPY_IN_THE_AIR
		:: unknown && !alone ->
			/* an earlier copy of it may have landed, or may still land */
			printf("master %d sends batch %d: denied; it settles before it judges\n", m, sent[m]);
			found[m] = sent[m]; sent[m] = 0; unknown = 0; goto settle
#endif
		:: alone ->
			/* the zone is denied: it is blocked. The journal alone is tried again later, and says nothing about names then. */
			printf("master %d sends the journal alone: denied, the zone is blocked\n", m);
			denied = 0;
#ifdef BLOCKED_ZONE_ENDS_CLEAN
			if
			:: m < MASTERS && lease == m && !recording[m] ->
				printf("master %d ends clean\n", m);
				lease_clean = 1; up[m] = 2; sent[m] = 0; d_step { tidy() };
				goto done
			:: true
			fi;
#endif
			goto send
		:: else
		fi;
		/* Is it the zone, or a name? Nothing of this batch was applied. The journal is tried alone, as a batch without units. */
		printf("master %d sends batch %d: denied\n", m, sent[m]);
#ifdef DENIED_IS_LANDED
		knows[m] = 0; goto landed;
#endif
#ifdef DENIED_IS_SENT_AGAIN
		if
		:: fenced_in(m) ->
			printf("master %d writes inflight: the journal alone. It does not learn of that, and keeps batch %d\n", m, sent[m]);
			d_step { WRITES(m); fresh(b); inflight = b; inflight_epoch = m; b = 0; carry(); tidy() };
			goto send
		:: else -> goto lost
		fi;
#endif
		units_of(sent[m], denied);
		alone = 1;
#ifdef ALONE_KEEPS_THE_BATCH
		goto announce;
#endif
		d_step {
			fresh(b);
#ifdef ALONE_IS_ANNOUNCED_WITH_UNITS
			k = 0;
			do
			:: k == KEYS -> break
			:: else -> before[AT(b, k)] = before[AT(sent[m], k)]; after[AT(b, k)] = after[AT(sent[m], k)]; k++
			od;
			k = 0;
#endif
			sent[m] = b; by[b] = m; fits[b] = knows[m];
			b = 0
		}
		printf("master %d makes batch %d: the journal alone\n", m, sent[m]);
		goto announce
	}
#endif

landed:
	atomic {
#if DENIED
		if
		:: denied ->
			/* The journal may change: names are denied. One key is refused. Several go again, in smaller batches. */
			d_step {
				if
				:: denied & (denied - 1) -> printf("master %d takes the denied batch apart\n", m)
				:: else ->
					printf("master %d: the name of key %d is not allowed\n", m, denied >> 1);
#ifdef DENIED_DELETION_IS_GONE
					free[m] = (intended[denied >> 1] -> 0 : denied);
#endif
					tell(sent[m], denied, 1)
				fi;
				sent[m] = 0; unknown = 0; no_denial; tidy()
			};
			goto idle
		:: else
		fi;
#endif
		d_step {
			units_of(sent[m], b);
#ifdef ALONE_HAS_UNITS
			b = (alone -> 0 : b);
#endif
			tell(sent[m], b, 0);
			b = 0; sent[m] = 0; bad = 0; unknown = 0; no_denial;
			cleared = former_of(m);
			tidy()
		}
	}
	goto idle;

#if ANEW
	/* A step raised what nobody expected: the zone begins anew, and knows nothing. What it told the cluster last is still in the
	 * cluster's mailbox, or is ignored there, as of an older incarnation. */
anew:
	atomic {
		printf("the zone of master %d begins anew\n", m);
		if
		:: owed[m] ->
			printf("the cluster of master %d drops what the zone told it last\n", m);
			d_step { owed[m] = 0; answered() }
#if OWED
		:: late[m] ->
			printf("the cluster of master %d drops what the zone told it before\n", m);
			d_step {
				owed[m] = 0; answered();
				owes_no_longer(0);
#if KEYS > 1
				owes_no_longer(1)
#endif
			}
#endif
		:: true
		fi;
		d_step {
			sent[m] = 0; found[m] = 0; knows[m] = 0; journal_read = 0; unknown = 0; bad = 0; announced = 0; cleared = 0; no_denial;
			tidy()
		}
#ifdef ANEW_WITHOUT_SETTLING
		announced = 1;
		cleared = !inflight;
		goto idle
#else
		goto begin
#endif
	}
#endif

#if OWED && RELEASES > 1
alone:                              /* the zone of this session does nothing; the next session settles it */
	atomic {
		if
		:: fence > m
		:: m == MASTERS
		fi;
		up[m] = 2;
		goto done
	}
#endif

lost:                               /* this session ends without writing anything more */
	atomic {
		assert(m < MASTERS);        /* nobody is newer than the last */
		printf("master %d finds that it is no master any more\n", m);
		d_step { up[m] = 2; sent[m] = 0; found[m] = 0; tidy() }
	}
done:
	/* nothing of an ended session matters any more */
	atomic { knows[m] = 0; clean = 0; journal_read = 0; unknown = 0; bad = 0; announced = 0; cleared = 0; no_denial;
#if OWED
		closed = 0
#endif
	}
}

init {
	byte i;
	atomic {
		run Events();
		run Air();
#if FOREIGN
		run Stranger();
#endif
#if DENIED
		run Policies();
#endif
#if REMOVALS
		run Person();
#endif
		i = 1;
		do
		:: i > MASTERS -> break
		:: else ->
#if RELEASES > 1
			if
			:: true
			:: former[i] = 1; printf("master %d is of the release before\n", i)
			fi;
#endif
			run Zone(i); run Cluster(i); i++
		od;
		i = 0
	}
}
