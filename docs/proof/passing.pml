/* A name passes from key A to key B of another cluster, in one batch (ADR 0052). See README.md, "Names that pass on".

   Durable: whose the claim is, what each key intends and what is applied to it, B's note, the inflight item, the journal, the set in the zone.
   A session forgets everything else when it dies. The next one settles, and takes up what is open in any order. */

#ifndef CRASHES
#define CRASHES 2
#endif

#define NONE 0
#define OF_A 1
#define OF_B 2

/* durable */
bool object_a = true;              /* A's object asks for the name; B's always does */
bool intended_a = true, applied_a = true, intended_b = false, applied_b = false;
bool owner_is_b = false, note_b = false;
byte batch = 0;                    /* of the inflight item; 0: none */
bool takes_a = false, makes_b = false;
byte journal = 0, set = OF_A;

/* the world */
bool heir_up = true;               /* B's cluster is listed */
bool was_down = false;             /* it was not, at some time */
bool was_late = false;             /* a session took A up more than 5 s after B */
bool judged = false;               /* B is in conflict with the set that stands */
byte crashes = 0;

/* of a session */
bool settled = true, knows_a = false, knows_b = false, under_way = false, landed = false;
bool waits_b = false, waited = false;  /* B was refused, and waits once for A */
bool closed_a = false, closed_b = false;

#define LEAVES (applied_a && !intended_a)
#define COMES (intended_b && !applied_b)
#define NAMED (batch != 0 && journal == batch)

/* Each half is closed, or the inflight item holds it until it is. */
inline whole() {
	assert(set != OF_B || applied_b || (NAMED && makes_b));
	assert(set == OF_A || !applied_a || (NAMED && takes_a));
	assert(set == OF_A || !applied_a || !applied_b || NAMED)
}

inline announce(a, b) {
	batch = journal + 1; takes_a = a; makes_b = b;
	under_way = true; landed = false; closed_a = !(a); closed_b = !(b);
	printf("announced:%d%d\n", a, b)
}

active proctype Deployment() {
	do
	:: atomic { object_a -> object_a = false; printf("A's object goes\n") }
	:: atomic { !object_a && heir_up && !was_down -> heir_up = false; was_down = true; printf("B's cluster is down\n") }
	:: atomic { !heir_up -> heir_up = true; printf("B's cluster is back\n") }

	/* clusters */
	:: atomic { !object_a && intended_a && settled ->
		intended_a = false; owner_is_b = true;
#ifndef NO_NOTE
		note_b = true;
#endif
		printf("A hands the claim on\n") }
	:: atomic { note_b && heir_up && settled -> note_b = false; intended_b = true; printf("B is planned\n") }

	/* what the zone hears: in one session of B not before A, since B is told once A is published */
	:: atomic { settled && LEAVES && !knows_a -> knows_a = true }
	:: atomic { settled && COMES && !knows_b && (knows_a || !applied_a || crashes > 0) -> knows_b = true }

	/* the zone */
	:: atomic { settled && !under_way && knows_a && knows_b -> waits_b = false; announce(true, true) }
#ifndef GO_APART
	:: atomic { settled && !under_way && knows_a && !knows_b && (was_down || judged) -> announce(true, false) }  /* 5 s are over */
#else
	:: atomic { settled && !under_way && knows_a && !knows_b -> announce(true, false) }
#endif
	:: atomic { settled && !under_way && !knows_a && knows_b && !waits_b -> announce(false, true) }
	:: atomic { settled && waits_b && !knows_a -> waits_b = false; was_late = true }  /* 5 s are over */
	:: atomic { settled && under_way && !landed && takes_a == (set == OF_A) && (makes_b || takes_a) ->
		set = (makes_b -> OF_B : NONE); journal = batch; landed = true;
		printf("landed, set:%d\n", set);
		assert(set != NONE || was_down || was_late);  /* never away */
		whole() }
	:: atomic { settled && under_way && !landed && takes_a != (set == OF_A) ->  /* refused: B waits once; then it is in conflict, and checked again */
		under_way = false; batch = 0; printf("refused\n");
		if
#ifndef JUDGE_AT_ONCE
		:: !waited -> waited = true; waits_b = true
#endif
		:: else -> knows_b = false; judged = true
		fi }
	:: atomic { settled && under_way && landed && !closed_a -> applied_a = false; closed_a = true; knows_a = false; whole() }
	:: atomic { settled && under_way && landed && !closed_b -> applied_b = true; closed_b = true; knows_b = false; whole() }
#ifdef ONE_HALF_CLOSES_THE_BATCH
	:: atomic { settled && under_way && landed && (closed_a || closed_b) -> under_way = false; batch = 0; whole() }
#else
	:: atomic { settled && under_way && landed && closed_a && closed_b -> under_way = false; batch = 0; whole() }
#endif

	/* a session dies, and the next one settles */
	:: atomic { crashes < CRASHES ->
		crashes++; settled = false; knows_a = false; knows_b = false; under_way = false; landed = false;
		waits_b = false; waited = false;
		printf("the session dies\n") }
	:: atomic { !settled && NAMED && takes_a && applied_a -> applied_a = false; whole() }
#ifndef SETTLE_ONE_HALF
	:: atomic { !settled && NAMED && makes_b && !applied_b -> applied_b = true; whole() }
	:: atomic { !settled && !(NAMED && ((takes_a && applied_a) || (makes_b && !applied_b))) ->
#else
	:: atomic { !settled && !(NAMED && takes_a && applied_a) ->
#endif
		journal = journal + 1; batch = 0; settled = true; printf("settled\n"); whole() }

	:: else -> break
	od;
	/* Nothing is left to do. */
	assert(set == OF_B && applied_b && intended_b && owner_is_b && !applied_a && !intended_a)
}
