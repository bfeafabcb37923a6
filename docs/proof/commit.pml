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
 *   Random ids  (batch ids) are drawn from a small pool, and only such as nobody remembers: as unique as 128 random bits.
 *
 * Sizes (-D): MASTERS sessions one after the other (the last does not crash), KEYS service keys with one record set each,
 * EVENTS in the cluster, FOREIGN acts of somebody else in the zone. One cluster, one zone.
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
#ifndef VALUES
#define VALUES 2                    /* a key wants nothing (0) or one of so many values */
#endif

#define NB       (2 * MASTERS + 1)  /* batch ids that can be told apart at one time; `fresh` asserts that they suffice */
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
byte inflight;                      /* id of the batch that is or may be under way; its content is batch `inflight` below */

/* ---- the hosted zone ---- */
byte zone[KEYS];                    /* what stands at the key's name, 0: nothing */
bit  theirs[KEYS];                  /* ghost: a foreign actor made it */
bit  touched[KEYS];                 /* ghost: a foreign actor took a set of ours away */
byte journal;                       /* its batch id, 0: none yet */
byte journal_epoch;

/* ---- change batches ---- */
byte before[(NB + 1) * KEYS];       /* a unit: DELETE of this value (0: no DELETE) .. */
byte after[(NB + 1) * KEYS];        /* .. and CREATE of that one (0: no CREATE); equal: the key has no unit in the batch */
byte by[NB + 1];                    /* epoch of its master */
bit  fits[NB + 1];                  /* the journal that this batch deletes still stands */
bit  air[NB + 1];                   /* a copy whose answer was lost may still land */
bit  swap_air[MASTERS + 1];         /* the same for a swap of the journal alone, by master */

/* ---- masters ---- */
byte up[MASTERS + 1];               /* 1: fence raised, running; 2: ended */
byte sent[MASTERS + 1];             /* the batch that is under way; its writer repeats it unchanged */
byte found[MASTERS + 1];            /* the inflight batch that a settling writer has read */
bit  knows[MASTERS + 1];            /* the journal that the writer knows is the one that stands */
bit  recording[MASTERS + 1];        /* the recorder is in the middle of a window */
byte wait[MASTERS + 1];             /* keys postponed after a refusal, until their retry (a bit each) */

/* ---- ghosts: what the invariants speak of ---- */
byte settled_epoch;                 /* the newest master whose zone writer has settled: older ones must change nothing any more */
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
#ifdef SWAP_BEFORE_CLOSING
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

/* An id that nobody remembers. */
inline fresh(id) {
	id = 1;
	do
	:: id > NB -> break
	:: else ->
		if
		:: journal == id || inflight == id || air[id] -> id++
		:: else ->
			x = 1;
			do
			:: x > MASTERS || sent[x] == id || found[x] == id -> break
			:: else -> x++
			od;
			if
			:: x > MASTERS -> break
			:: else -> id++
			fi
		fi
	od;
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

/* Forget what nobody can ask for any more, so that equal states look equal. Changes no behaviour. */
inline tidy() {
	y = 1;
	do
	:: y > NB -> break
	:: else ->
		x = 1;
		do
		:: x > MASTERS || sent[x] == y || found[x] == y -> break
		:: else -> x++
		od;
		if
		:: x > MASTERS && inflight != y ->
			if
			:: journal == y -> journal = OTHER
			:: else
			fi;
			if
			:: !air[y] ->
				by[y] = 0; fits[y] = 0;
				empty_batch(y)
			:: else
			fi
		:: else
		fi;
		y++
	od;
	x = 0; y = 0
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
		fits[x] = 0; air[x] = 0; x++
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
		:: MUST_MATCH && before[AT(b, x)] != after[AT(b, x)] && zone[x] != before[AT(b, x)] -> bad = bad | (1 << x)
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
		:: before[AT(b, x)] != after[AT(b, x)] ->
			assert(!(zone[x] && theirs[x]));    /* I3: a set that is not ours is never deleted or overwritten */
			zone[x] = after[AT(b, x)];
			theirs[x] = 0
		:: else
		fi;
		x++
	od;
	air[b] = 0;
	journal_moves(b, by[b])
}

/* ---- the cluster: something changes ---- */
proctype Cluster() {
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
	byte x, y, z, b, bad;
end:
	do
	:: atomic {
		if
		:: air[1] -> b = 1
		:: air[2] -> b = 2
		:: air[3] -> b = 3
		:: air[4] -> b = 4
		:: air[5] -> b = 5
#if MASTERS > 2
		:: air[6] -> b = 6
		:: air[7] -> b = 7
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
		:: swap_air[2] -> b = 2
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

/* planner._write: what the key wants now; open where the zone does not have it; a postponed key with news is due at once */
inline record(k) {
	if
	:: intended[k] != want(seen, k) -> wait[m] = wait[m] & ~(1 << (k))
	:: else
	fi;
	intended[k] = want(seen, k);
	conflict[k] = conflict[k] && intended[k];
	opened[k] = (intended[k] != applied[k])
}

/* ---- a session's recorder: reads events, makes them durable ---- */
proctype Recorder(byte m) {
	byte seen, place;

	/* cluster_runner._listen: from the checkpoint as read after the fence was raised */
end0:
	d_step { up[m] -> place = checkpoint }
end:
	do
	:: atomic { up[m] == 2 -> goto over }
	:: atomic {
		/* window.close: everything up to some event, merged */
		up[m] == 1 && place < events ->
		recording[m] = 1;
		seen = place + 1;
		do
		:: seen < events -> seen++
		:: break
		od
	}
#ifdef CHECKPOINT_BEFORE_RECORD
	atomic {
		if
		:: fenced_in(m) -> WRITES(m); checkpoint = seen; printf("master %d moves the checkpoint to %d\n", m, seen)
		:: else -> goto lost
		fi
	}
#endif
#if KEYS > 1
	/* recorder._commit: more than one transaction; keys whole, checkpoints in the last */
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d records key 0 as of event %d, no checkpoint yet\n", m, seen);
			d_step { WRITES(m); record(0) }
		:: else -> goto lost
		fi
	}
#endif
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d records up to event %d, checkpoint with it\n", m, seen);
			d_step {
				WRITES(m);
				record(KEYS - 1);
				checkpoint = seen;
				place = seen; seen = 0;
				recording[m] = 0
			}
		:: else -> goto lost
		fi
	}
	od;
lost:                               /* NotMasterError */
over:
	atomic { up[m] == 2 -> place = 0; seen = 0; recording[m] = 0 }
}

/* closer._after: what landed moves `applied`; a key without a change left closes */
inline moves_applied(k, value) {
	applied[k] = value;
	opened[k] = (intended[k] != applied[k])
}

/* the closing transaction of a landed batch: all its units, and the inflight item */
inline close_batch(b) {
	x = 0;
	do
	:: x == KEYS -> break
	:: else ->
		if
		:: before[AT(b, x)] != after[AT(b, x)] ->
			moves_applied(x, after[AT(b, x)]);
			wait[m] = wait[m] & ~(1 << x)
		:: else
		fi;
		x++
	od;
	inflight = 0; inflight_epoch = m;
	x = 0
}

#define has(bits, k)  (((bits) >> (k)) & 1)
#define due(k)        (opened[k] && !conflict[k] && intended[k] != applied[k] && !has(wait[m], k))
#define held_up(k)    (conflict[k] && zone[k] || has(wait[m], k) && zone[k] != applied[k])
#define helps(k)      (has(wait[m], k) && !conflict[k] && zone[k] == applied[k])
#if KEYS > 1
#define any_due       (due(0) || due(1))
#define any_helps     (helps(0) || helps(1))
#define all_done      (!recording[m] && checkpoint == EVENTS && (!opened[0] || held_up(0)) && (!opened[1] || held_up(1)))
#else
#define any_due       due(0)
#define any_helps     helps(0)
#define all_done      (!recording[m] && checkpoint == EVENTS && (!opened[0] || held_up(0)))
#endif

/* I1, when the last session has nothing left to do. */
inline check_quiet(k) {
	assert(intended[k] == want(EVENTS, k));             /* no event was lost */
	if
	:: opened[k] ->                                     /* only somebody else's set keeps a key open */
		assert(touched[k] || (zone[k] && theirs[k]))
	:: else ->
		assert(applied[k] == intended[k]);
		assert(touched[k] || (applied[k] == 0 && theirs[k]) || (zone[k] == applied[k] && !theirs[k]))
	fi
}

/* ---- a session: lease, fence, and the writer of its one zone ---- */
proctype Writer(byte m) {
	byte x, y, z, k, b, bad;
	byte free;                      /* judged: nothing stands where a set was to be deleted */
	byte alien;                     /* judged: a set stands where there should be none */
	bit settled, journal_read, unknown;
#ifdef READ_BEFORE_FENCE
	bit exists;
#endif
#ifdef SWAP_BEFORE_CLOSING
	bit proven;
#endif

	/* lease_keeper.acquire: released, expired, or so it seems. One write, conditional on the renewal that was read. */
	d_step {
		lease == m - 1 ->
		lease = m;
		settled = lease_clean;
		lease_clean = 0;
		printf("master %d takes the lease; released clean before: %d\n", m, settled)
	}
#ifdef READ_BEFORE_FENCE
	atomic { exists = inflight_exists; found[m] = inflight }
#define EXISTS exists
#else
#define EXISTS inflight_exists
#endif
	/* master.take_over: raise the fence, only upward, before anything is read */
	atomic {
		if
		:: fence < m ->
			WRITES(m);
			fence = m;
			up[m] = 1;
			printf("master %d raises the fence\n", m);
			if
			:: settled -> settled_epoch = m; goto idle
			:: else
			fi
		:: else -> goto lost
		fi
	}

	/* ---- zone_writer._settle: after an unclean end ---- */
	atomic {
		if
		:: !EXISTS ->                                           /* nothing was ever sent */
			printf("master %d finds no inflight item: nothing to settle\n", m);
			settled_epoch = m; goto idle
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
			printf("master %d settles; inflight names batch %d\n", m, found[m])
		fi
	}
settle:
	/* zone_writer._read_journal */
	atomic {
		if
		:: journal_epoch > m -> goto lost
		:: else -> knows[m] = 1; journal_read = 1
		fi;
		if
		:: CLOSES_FIRST && found[m] && (journal == found[m] || NO_COMPARISON) -> skip
		:: else -> goto swap
		fi
	}
	/* it had landed: close it before the swap takes the proof away */
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d closes batch %d: the journal says that it landed\n", m, found[m]);
			d_step { WRITES(m); close_batch(found[m]); found[m] = 0; tidy() }
		:: else -> goto lost
		fi
	}
swap:
#ifndef NO_SWAP_AT_UNCLEAN_TAKEOVER
#ifndef SWAP_UNANNOUNCED
	/* zone_ground._announce_swap: the item tells of every change of the journal before it is made */
	atomic {
		if
		:: inflight_epoch == m
		:: else ->
			if
			:: fenced_in(m) ->
				printf("master %d announces its swap of the journal\n", m);
				d_step { WRITES(m); inflight_epoch = m; tidy() }
			:: else -> goto lost
			fi
		fi
	}
#endif
	atomic {
		if
		:: true ->                                              /* answered */
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
			proven = 0;
			if
			:: fenced_in(m) -> d_step { WRITES(m); close_batch(found[m]); found[m] = 0; tidy() }
			:: else -> goto lost
			fi
		:: else
		fi
	}
#endif
	/* what has not landed by now never will */
	atomic {
		if
		:: !found[m]
		:: else ->
			if
			:: fenced_in(m) ->
				printf("master %d clears inflight: batch %d never landed\n", m, found[m]);
				d_step { WRITES(m); inflight = 0; found[m] = 0; tidy() }
			:: else -> goto lost
			fi
		fi
	}

	/* ---- zone_writer._next, while no batch is under way ---- */
idle:
	do
	:: atomic { any_due -> break }
	/* lease_keeper._lose, or the recorder met a newer fence: the session ends, and not clean */
	:: atomic { fence > m -> goto lost }
	/* retry_at of a postponed key has come. The last session need not try in vain. */
	:: atomic { wait[m] && (m < MASTERS || any_helps) -> wait[m] = 0 }
#if FOREIGN
	/* reclaim: a name in conflict is read again, and claimed again where it is free */
	:: atomic {
		if
		:: conflict[0] && zone[0] == 0 -> k = 0
#if KEYS > 1
		:: conflict[1] && zone[1] == 0 -> k = 1
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
#endif
	/* session._finish: all recorded, nothing under way: released clean. The last session ends when nothing is left to do. */
	:: atomic {
		m < MASTERS && !recording[m] ->
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

	/* zone_writer._due: any of the due units (limits and halves decide which), as the ledger has them now */
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
		k = 0
	}
	/* zone_writer._start: the journal (read once; afterwards this writer moves it), and the swap built from it */
	atomic {
		if
		:: journal_read
		:: else ->
			if
			:: journal_epoch > m -> goto lost
			:: else -> knows[m] = 1; journal_read = 1
			fi
		fi;
		fits[sent[m]] = knows[m]
	}
	/* zone_writer._write_inflight */
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d writes inflight: batch %d\n", m, sent[m]);
			d_step {
				WRITES(m);
				inflight_exists = 1; inflight_epoch = m;
#ifndef NO_INFLIGHT
				inflight = sent[m];
#endif
				unknown = 0;
				tidy()
			}
		:: else -> goto lost
		fi
	}
	/* zone_writer._send */
send:
	atomic {
		if
		:: true ->                                              /* answered */
			d_step {
				judge_batch(sent[m], bad);
				if
				:: fits[sent[m]] && !bad -> land(sent[m]); knows[m] = 1; b = 1
				:: else
				fi;
				tidy()
			};
			if
			:: b -> printf("master %d sends batch %d: landed\n", m, sent[m]); b = 0; goto close
			:: else -> printf("master %d sends batch %d: refused\n", m, sent[m])
			fi
		:: !unknown || (fits[sent[m]] && !air[sent[m]]) ->      /* no answer: a copy lands now, later or never */
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
		fi
	}
	/* zone_writer._refused */
	atomic {
		if
		:: journal_epoch > m -> goto lost
		:: journal_epoch <= m && journal == sent[m] ->
			printf("master %d reads the journal: batch %d had landed\n", m, sent[m]);
			knows[m] = 1; bad = 0; goto close
		:: else ->
			if
			:: !fits[sent[m]] ->                                /* the journal had moved: again, with the journal as it is */
				printf("master %d reads the journal: it had moved, batch %d is dropped\n", m, sent[m]);
				knows[m] = 1;
				sent[m] = 0; bad = 0; unknown = 0; d_step { tidy() };
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
	/* zone_writer._judge: read what stands at the names that were complained about */
	atomic {
		k = 0;
		do
		:: k == KEYS -> break
		:: else ->
			if
			:: has(bad, k) && before[AT(sent[m], k)] == 0 && zone[k] ->
				if
				:: ADOPTS && zone[k] == after[AT(sent[m], k)] -> free = free | (1 << k)
				:: else -> alien = alien | (1 << k)
				fi
			:: has(bad, k) && after[AT(sent[m], k)] == 0 && zone[k] == 0 -> free = free | (1 << k)
			:: else
			fi;
			k++
		od;
		k = 0;
		printf("master %d looks at the culprits of batch %d: foreign %d, gone %d (a bit for each key)\n", m, sent[m], alien, free)
	}
	/* .. and close them: conflict, landed after all, or postponed. The others go again. */
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d closes the culprits of batch %d\n", m, sent[m]);
			d_step {
				WRITES(m);
				k = 0;
				do
				:: k == KEYS -> break
				:: else ->
					if
					:: has(free, k) -> moves_applied(k, after[AT(sent[m], k)])
					:: has(alien, k) -> conflict[k] = 1; opened[k] = (intended[k] != applied[k]); wait[m] = wait[m] | (1 << k)
					:: has(bad, k) && !has(free, k) && !has(alien, k) -> wait[m] = wait[m] | (1 << k)
					:: else
					fi;
					k++
				od;
				k = 0; bad = 0; free = 0; alien = 0; sent[m] = 0; unknown = 0;
				tidy()
			}
		:: else -> goto lost
		fi
	}
	goto idle;

	/* zone_writer._landed */
close:
	atomic {
		if
		:: fenced_in(m) ->
			printf("master %d closes batch %d\n", m, sent[m]);
			d_step { WRITES(m); close_batch(sent[m]); sent[m] = 0; bad = 0; unknown = 0; tidy() }
		:: else -> goto lost
		fi
	}
	goto idle;

lost:                               /* NotMasterError: this session ends without writing anything more */
	atomic {
		printf("master %d finds that it is no master any more\n", m);
		d_step { up[m] = 2; sent[m] = 0; found[m] = 0; tidy() }
	}
done:
	/* nothing of an ended session matters any more */
	atomic { wait[m] = 0; knows[m] = 0; settled = 0; journal_read = 0; unknown = 0; bad = 0; alien = 0; free = 0 }
}

init {
	byte i;
	atomic {
		run Cluster();
		run Air();
#if FOREIGN
		run Stranger();
#endif
		i = 1;
		do
		:: i > MASTERS -> break
		:: else -> run Writer(i); run Recorder(i); i++
		od;
		i = 0
	}
}
