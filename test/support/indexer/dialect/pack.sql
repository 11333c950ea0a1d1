SELECT toStartOfMinute(block_time) AS m, count() AS n, countIf(NOT success) AS failed FROM transactions GROUP BY m ORDER BY m
SELECT toStartOfHour(block_time) AS h, sum(fee) AS fees, avg(compute_units) AS cu FROM transactions GROUP BY h ORDER BY h
SELECT toStartOfFiveMinutes(block_time) AS t, uniqExact(fee_payer) AS payers FROM transactions GROUP BY t ORDER BY t
SELECT toStartOfFifteenMinutes(block_time) AS t, max(tx_index) AS last FROM transactions GROUP BY t ORDER BY t
SELECT toStartOfTenMinutes(block_time) AS t, min(slot) AS first FROM transactions GROUP BY t ORDER BY t
SELECT toStartOfInterval(block_time, INTERVAL 2 SECOND) AS t, count() FROM blocks GROUP BY t ORDER BY t
SELECT toStartOfInterval(block_time, INTERVAL 1 HOUR) AS t, count() AS c FROM blocks GROUP BY t ORDER BY t
SELECT toStartOfInterval(block_time, toIntervalDay(1)) AS t, count() AS c FROM blocks GROUP BY t ORDER BY t
SELECT toStartOfInterval(block_time, INTERVAL 1 WEEK) AS t, sum(tx_count) AS c FROM blocks GROUP BY t
SELECT toStartOfInterval(block_time, INTERVAL 1 MONTH) AS t, sum(tx_count) AS c FROM blocks GROUP BY t
SELECT toStartOfDay(block_time) AS d, toDate(block_time) AS e, toStartOfMonth(block_time) AS m, toStartOfYear(block_time) AS y FROM blocks LIMIT 1
SELECT toMonday(block_time) AS a, toStartOfWeek(block_time) AS b, toStartOfQuarter(block_time) AS q, toLastDayOfMonth(block_time) AS l FROM blocks LIMIT 1
SELECT toYYYYMM(block_time) AS a, toYYYYMMDD(block_time) AS b, toYYYYMMDDhhmmss(block_time) AS c FROM blocks ORDER BY slot LIMIT 3
SELECT toYear(block_time) AS y, toMonth(block_time) AS m, toDayOfMonth(block_time) AS d, toHour(block_time) AS h, toMinute(block_time) AS mi, toSecond(block_time) AS s FROM blocks ORDER BY slot LIMIT 2
SELECT toDayOfWeek(block_time) AS w, toDayOfYear(block_time) AS y, toISOWeek(block_time) AS i, toQuarter(block_time) AS q FROM blocks LIMIT 1
SELECT formatDateTime(block_time, '%Y-%m-%d %H:%i:%S') AS t, slot FROM blocks ORDER BY slot LIMIT 3
SELECT formatDateTime(block_time, '%d/%m/%y') AS d, count() AS c FROM blocks GROUP BY d
SELECT toDateTime64(block_time, 3) AS t, slot FROM blocks ORDER BY slot LIMIT 2
SELECT toDateTime64('2023-11-14 22:13:20.123456', 6) AS t
SELECT toTimeZone(block_time, 'Asia/Tokyo') AS t, toHour(toTimeZone(block_time, 'Asia/Tokyo')) AS h FROM blocks ORDER BY slot LIMIT 2
SELECT toTimeZone(block_time, 'America/New_York') AS t FROM blocks ORDER BY slot LIMIT 1
SELECT parseDateTimeBestEffort('2023-11-14T22:13:20Z') AS a, parseDateTimeBestEffort('2023-11-14 22:13:20') AS b
SELECT parseDateTimeBestEffortOrNull('nonsense') AS a
SELECT fromUnixTimestamp(1700000000) AS a, toUnixTimestamp(toDateTime('2023-11-14 22:13:20')) AS b
SELECT toDateTime(1700000000) AS a, toDateTime(slot) AS b FROM blocks ORDER BY slot LIMIT 1
SELECT yesterday() < today() AS a, today() - yesterday() AS b, now() > toDateTime('2020-01-01 00:00:00') AS c
SELECT count() AS c FROM blocks WHERE block_time > now() - INTERVAL 100 YEAR
SELECT count() AS c FROM blocks WHERE block_time >= '2023-11-14 00:00:00' AND block_time < '2023-11-15 00:00:00'
SELECT count() AS c FROM blocks WHERE toDate(block_time) = '2023-11-14'
SELECT count() AS c FROM blocks WHERE block_time BETWEEN toDateTime('2023-11-14 00:00:00') AND toDateTime('2023-11-14 23:59:59')
SELECT dateDiff('second', min(block_time), max(block_time)) AS s FROM blocks
SELECT dateDiff('minute', toDateTime('2023-11-14 22:00:59'), toDateTime('2023-11-14 22:01:00')) AS a, dateDiff(day, toDate('2023-01-01'), toDate('2023-02-01')) AS b
SELECT age('minute', toDateTime('2023-11-14 22:00:59'), toDateTime('2023-11-14 22:01:00')) AS a
SELECT addHours(block_time, 1) AS a, subtractDays(block_time, 2) AS b, addMonths(block_time, 1) AS c FROM blocks ORDER BY slot LIMIT 1
SELECT block_time + INTERVAL 90 MINUTE AS a, block_time - 60 AS b, toDate(block_time) + 7 AS c FROM blocks ORDER BY slot LIMIT 1
SELECT date_trunc('hour', block_time) AS h, date_trunc('month', block_time) AS m FROM blocks LIMIT 1
SELECT makeDate(2024, 2, 29) AS a, makeDateTime(2024, 2, 29, 12, 0, 1) AS b
SELECT monthName(block_time) AS m, dateName('weekday', block_time) AS d FROM blocks LIMIT 1
SELECT any(leader) AS a FROM blocks
SELECT version, any(success) AS a, anyLast(version) AS b FROM transactions WHERE success GROUP BY version ORDER BY version
SELECT round(stddevPop(compute_units), 3) AS a, round(stddevSamp(compute_units), 3) AS b FROM transactions
SELECT round(varPop(compute_units), 1) AS a, round(varSamp(compute_units), 1) AS b FROM transactions
SELECT uniqCombined(fee_payer) AS a, uniq(fee_payer) AS b, uniqExact(signature) AS c FROM transactions
SELECT uniqIf(fee_payer, success) AS a, uniqExactIf(fee_payer, NOT success) AS b FROM transactions
SELECT countDistinct(fee_payer) AS a, count(DISTINCT version) AS b, count(DISTINCT fee_payer, version) AS c FROM transactions
SELECT quantile(0.5)(compute_units) AS a, quantile(0.95)(compute_units) AS b FROM transactions
SELECT version, quantiles(0.25, 0.5, 0.75)(compute_units) AS q FROM transactions GROUP BY version ORDER BY version
SELECT quantileExact(0.9)(compute_units) AS a, median(compute_units) AS b, quantileExactLow(0.5)(compute_units) AS c FROM transactions
SELECT quantileTDigest(0.5)(fee) AS a FROM transactions
SELECT length(histogram(5)(compute_units)) AS n FROM transactions
SELECT groupArray(3)(slot) AS a FROM (SELECT slot FROM blocks ORDER BY slot)
SELECT arraySort(groupArray(version)) AS a FROM (SELECT DISTINCT version FROM transactions)
SELECT slot, arraySort(groupUniqArray(version)) AS v FROM transactions GROUP BY slot ORDER BY slot LIMIT 5
SELECT topK(1)(version) AS t FROM transactions
SELECT argMax(slot, tx_index) AS a, argMin(tx_index, slot) AS b FROM transactions WHERE slot = 1001
SELECT sumIf(fee, success) AS a, avgIf(compute_units, success) AS b, minIf(fee, success) AS c, maxIf(fee, fee > 1000000) AS d FROM transactions
SELECT groupBitOr(tx_index) AS a, groupBitAnd(tx_index) AS b, groupBitXor(tx_index) AS c FROM transactions
SELECT corr(slot, block_height) AS c, round(covarPop(slot, tx_count), 3) AS d FROM blocks
SELECT sum(fee), max(fee), min(signature), any(block_time), count() FROM transactions WHERE 0
SELECT avg(fee), quantile(0.5)(fee), stddevPop(fee) FROM transactions WHERE slot = 0
SELECT version, count() AS c FROM transactions GROUP BY version WITH TOTALS ORDER BY version
SELECT version, success, count() AS c FROM transactions GROUP BY version, success WITH ROLLUP ORDER BY ALL
SELECT version, success, sum(fee) AS c FROM transactions GROUP BY version, success WITH CUBE ORDER BY ALL
SELECT version, success, count() AS c FROM transactions GROUP BY ROLLUP(version, success) ORDER BY version, success, c
SELECT version, success, count() AS c FROM transactions GROUP BY GROUPING SETS ((version), (success)) ORDER BY version, success, c
SELECT version, success, count() AS c FROM transactions GROUP BY ALL ORDER BY ALL
SELECT multiIf(compute_units < 50000, 'low', compute_units < 150000, 'middle', 'high') AS level, count() AS c FROM transactions GROUP BY level ORDER BY level
SELECT arrayJoin(program_ids) AS program, count() AS c FROM transactions GROUP BY program ORDER BY c DESC, program LIMIT 5
SELECT arrayJoin(program_ids) AS program, uniq(fee_payer) AS c FROM transactions WHERE program != 'x' GROUP BY program ORDER BY program LIMIT 4
SELECT arrayJoin([1, 2, 3]) AS x, x * 2 AS y
SELECT count() AS c FROM transactions WHERE match(fee_payer, '^[A-C]')
SELECT replaceAll(version, 'legacy', 'old') AS v, count() AS c FROM transactions GROUP BY v ORDER BY v
SELECT replaceOne('a-b-c', '-', '+') AS a, replaceRegexpAll('a1b22', '[0-9]+', '#') AS b, replaceRegexpOne('a1b22', '([0-9]+)', '<\\1>') AS c
SELECT signature, indexOf(account_keys, fee_payer) AS i FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT arrayMap(x -> substring(x, 1, 4), account_keys) AS k FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT arrayMap((x, i) -> concat(toString(i), ':', substring(x, 1, 3)), account_keys, arrayEnumerate(account_keys)) AS k FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT arrayFilter(x -> x LIKE 'V%', program_ids) AS v FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT arraySlice(account_keys, 2, 2) AS s, arraySlice(account_keys, -1) AS l FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT arrayStringConcat(arrayMap(x -> substring(x, 1, 2), account_keys), ',') AS s FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT JSONExtractString('{"a":"b","n":5}', 'a') AS a, JSONExtractInt('{"a":"b","n":5}', 'n') AS n
SELECT err, JSONExtractInt(err, 'InstructionError', 1) AS i, count() AS c FROM transactions WHERE err != '' GROUP BY err ORDER BY c DESC LIMIT 2
SELECT JSONExtractUInt('{"a":{"b":[1,2,3]}}', 'a', 'b', 2) AS x, JSONLength('{"a":[1,2,3]}', 'a') AS l, JSONHas('{"a":1}', 'b') AS h
SELECT JSONExtractFloat('{"x":1.5}', 'x') AS a, JSONExtractBool('{"x":true}', 'x') AS b, JSONExtractRaw('{"x":[1,2]}', 'x') AS c
SELECT JSONExtractArrayRaw('[1,"a"]') AS a, JSONExtractKeys('{"a":1,"b":2}') AS k, JSONType('{"a":1}', 'a') AS t
SELECT JSONExtract('{"a":5}', 'a', 'Int32') AS a, JSONExtract('{"a":[1,2]}', 'a', 'Array(UInt8)') AS b, isValidJSON('{') AS c
SELECT base58Encode('hello') AS a, base58Decode('Cn8eVZg') AS b
SELECT length(base58Decode(blockhash)) AS n, base58Encode(base58Decode(blockhash)) = blockhash AS same FROM blocks ORDER BY slot LIMIT 3
SELECT hex(base58Decode(data)) AS h FROM instructions ORDER BY slot, tx_index, ix_index, inner_index LIMIT 3
SELECT tuple(1, 'a') AS t, tuple(slot, leader).1 AS s FROM blocks ORDER BY slot LIMIT 2
SELECT (slot, tx_count) AS p FROM blocks ORDER BY slot LIMIT 2
SELECT map('fee', 1, 'cu', 2) AS m, map('a', 10)['a'] AS v, mapKeys(map('x', 1)) AS k
SELECT transform(version, ['legacy', '0'], ['old', 'new'], 'other') AS v, count() AS c FROM transactions GROUP BY v ORDER BY v
SELECT transform(tx_index, [0, 1], [100, 200]) AS v FROM transactions WHERE slot = 1001 ORDER BY tx_index LIMIT 3
SELECT bitAnd(slot, 7) AS a, bitOr(tx_count, 1) AS b, bitXor(slot, 255) AS c, bitShiftLeft(tx_count, 2) AS d, bitShiftRight(slot, 3) AS e FROM blocks ORDER BY slot LIMIT 3
SELECT number, number * number AS s FROM numbers(5)
SELECT number FROM numbers(10, 3)
SELECT sum(number) AS s FROM numbers(1000)
SELECT extract(signature, '^[0-9A-Za-z]{3}') AS e, extractAll('a1b2c3', '[0-9]') AS a FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT extract(YEAR FROM block_time) AS y FROM blocks LIMIT 1
SELECT leader, slot FROM blocks ORDER BY slot DESC LIMIT 2 BY leader
SELECT version, slot, tx_index FROM transactions ORDER BY slot, tx_index LIMIT 1 BY version
SELECT slot, version, count() AS c FROM transactions GROUP BY slot, version ORDER BY slot, version LIMIT 1, 1 BY slot LIMIT 3
SELECT slot, p FROM transactions ARRAY JOIN program_ids AS p ORDER BY slot, tx_index, p LIMIT 5
SELECT p, count() AS c FROM transactions ARRAY JOIN program_ids AS p GROUP BY p ORDER BY c DESC, p LIMIT 3
SELECT slot, tx_index, l FROM transactions LEFT ARRAY JOIN arrayFilter(x -> x = 'none', log_messages) AS l ORDER BY slot, tx_index LIMIT 3
SELECT k, i FROM transactions ARRAY JOIN account_keys AS k, arrayEnumerate(account_keys) AS i ORDER BY slot, tx_index, i LIMIT 4
SELECT slot, program_ids FROM transactions ARRAY JOIN program_ids ORDER BY slot, tx_index, program_ids LIMIT 3
SELECT slot, count() AS c FROM blocks GROUP BY slot ORDER BY slot WITH FILL
SELECT slot, tx_count FROM blocks WHERE slot < 1006 ORDER BY slot WITH FILL FROM 1000 TO 1010
SELECT slot, tx_count FROM blocks WHERE slot < 1006 ORDER BY slot WITH FILL FROM 1000 TO 1010 STEP 5
SELECT toStartOfInterval(block_time, INTERVAL 1 SECOND) AS t, count() AS c FROM blocks GROUP BY t ORDER BY t WITH FILL STEP INTERVAL 1 SECOND
SELECT slot FROM blocks ORDER BY slot LIMIT 2, 3
SELECT slot FROM blocks ORDER BY slot LIMIT 3 OFFSET 5
SELECT * EXCEPT (blockhash, parent_blockhash, commitment) FROM blocks ORDER BY slot LIMIT 1
SELECT * EXCEPT commitment REPLACE (slot + 1 AS slot, lower(leader) AS leader) FROM blocks ORDER BY blockhash LIMIT 1
SELECT COLUMNS('slot|height') FROM blocks ORDER BY slot LIMIT 2
SELECT COLUMNS('count') APPLY sum FROM blocks
WITH 5 AS n SELECT slot, slot % n AS r FROM blocks ORDER BY slot LIMIT 3
WITH (SELECT max(slot) FROM blocks) AS top SELECT slot, top - slot AS behind FROM blocks ORDER BY slot DESC LIMIT 3
WITH 'legacy' AS v, 2 AS k SELECT count() * k AS c FROM transactions WHERE version = v
WITH a AS (SELECT slot, tx_count FROM blocks), b AS (SELECT max(tx_count) AS m FROM a) SELECT a.slot FROM a, b WHERE a.tx_count = b.m ORDER BY a.slot LIMIT 3
SELECT t.signature, b.leader FROM transactions AS t ANY LEFT JOIN blocks AS b ON t.slot = b.slot ORDER BY t.slot, t.tx_index LIMIT 3
SELECT b.slot FROM blocks AS b LEFT SEMI JOIN transactions AS t ON b.slot = t.slot ORDER BY b.slot LIMIT 3
SELECT b.slot FROM blocks AS b LEFT ANTI JOIN rewards AS r ON b.slot = r.slot + 1 ORDER BY b.slot LIMIT 3
SELECT count() AS c FROM transactions AS t GLOBAL INNER JOIN blocks AS b ON t.slot = b.slot
SELECT t.slot AS s, count() AS c FROM transactions t JOIN blocks b USING (slot) GROUP BY s ORDER BY s LIMIT 3
SELECT slot, b.leader, t.fee FROM transactions t INNER JOIN blocks b USING slot ORDER BY slot, tx_index LIMIT 2
SELECT b.slot, r.lamports FROM blocks b LEFT JOIN rewards r ON b.slot = r.slot AND r.lamports > 10000 ORDER BY b.slot LIMIT 3
SELECT b.slot AS a, r.slot AS c FROM blocks b FULL OUTER JOIN (SELECT slot + 5 AS slot FROM blocks) r ON b.slot = r.slot ORDER BY a, c LIMIT 8
SELECT count() AS c FROM blocks CROSS JOIN (SELECT 1 AS x UNION ALL SELECT 2) AS two
SELECT b.slot, p.slot AS prev FROM blocks b ASOF JOIN (SELECT slot, leader FROM blocks) p ON b.leader = p.leader AND b.slot > p.slot ORDER BY b.slot LIMIT 3
SELECT slot, lagInFrame(slot) OVER (ORDER BY slot) AS prev, slot - prev AS gap FROM blocks ORDER BY slot LIMIT 4
SELECT slot, leadInFrame(slot, 1, slot) OVER (ORDER BY slot ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS nxt FROM blocks ORDER BY slot LIMIT 4
SELECT slot, row_number() OVER (PARTITION BY leader ORDER BY slot) AS n, rank() OVER (ORDER BY tx_count) AS r FROM blocks ORDER BY slot LIMIT 4
SELECT slot, sum(tx_count) OVER (ORDER BY slot) AS running, avg(vote_tx_count) OVER (ORDER BY slot ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving FROM blocks ORDER BY slot LIMIT 5
SELECT slot, sum(tx_count) OVER w AS s, count() OVER w AS c FROM blocks WINDOW w AS (PARTITION BY slot % 2 ORDER BY slot) ORDER BY slot LIMIT 5
SELECT slot, tx_index, fee_payer FROM transactions QUALIFY row_number() OVER (PARTITION BY slot ORDER BY compute_units DESC, tx_index) = 1 ORDER BY slot LIMIT 3
SELECT version, count() AS c, sum(count()) OVER () AS total, round(c / total, 4) AS share FROM transactions GROUP BY version ORDER BY version
SELECT slot, first_value(slot) OVER (ORDER BY slot) AS f, last_value(slot) OVER (ORDER BY slot) AS l, ntile(4) OVER (ORDER BY slot) AS q FROM blocks ORDER BY slot LIMIT 4
SELECT slot, dense_rank() OVER (ORDER BY vote_tx_count DESC) AS d, percent_rank() OVER (ORDER BY slot) AS p FROM blocks ORDER BY slot LIMIT 4
SELECT slot, lag(slot, 2) OVER (ORDER BY slot) AS a, lead(slot, 1) OVER (ORDER BY slot) AS b FROM blocks ORDER BY slot LIMIT 4
SELECT leader, count() AS blocks, sum(tx_count) AS txs FROM blocks GROUP BY leader ORDER BY txs DESC
SELECT fee_payer, count() AS n, sum(fee) AS total FROM transactions GROUP BY fee_payer HAVING n > 5 ORDER BY n DESC, fee_payer LIMIT 5
SELECT mint, sum(amount) AS volume, count() AS n, uniqExact(from_owner) AS senders FROM token_transfers WHERE kind != 'sol' GROUP BY mint ORDER BY volume DESC, mint LIMIT 5
SELECT kind, count() AS n, round(avg(amount), 2) AS mean, max(amount) AS largest FROM token_transfers GROUP BY kind ORDER BY kind
SELECT program_id, count() AS c FROM instructions WHERE inner_index = -1 GROUP BY program_id ORDER BY c DESC, program_id LIMIT 3
SELECT account, post - pre AS change FROM account_activity WHERE mint = '' ORDER BY change DESC, account, slot LIMIT 5
SELECT account, sum(toInt64(post) - toInt64(pre)) AS net FROM account_activity WHERE mint = '' GROUP BY account ORDER BY net DESC, account LIMIT 5
SELECT slot, success, count() AS c FROM transactions GROUP BY slot, success ORDER BY slot, success LIMIT 6
SELECT slot % 10 AS d, count() AS c FROM blocks GROUP BY d ORDER BY d
SELECT intDiv(slot, 5) * 5 AS bucket, sum(tx_count) AS t FROM blocks GROUP BY bucket ORDER BY bucket
SELECT floor(compute_units / 50000) * 50000 AS bucket, count() AS c FROM transactions GROUP BY bucket ORDER BY bucket
SELECT round(sum(fee) / 1e9, 6) AS sol, sum(fee) / count() AS mean FROM transactions
SELECT fee + compute_units AS a, fee - compute_units AS b, fee * 2 AS c, fee / 3 AS d FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT -tx_index AS a, abs(tx_index - 5) AS b, sign(toInt32(tx_index) - 3) AS c FROM transactions WHERE slot = 1001 ORDER BY tx_index LIMIT 4
SELECT sqrt(fee) AS a, pow(tx_index, 2) AS b, log2(8) AS c, exp(0) AS d, log10(1000) AS e FROM transactions ORDER BY slot, tx_index LIMIT 1
SELECT round(1234.567, 1) AS a, round(2.5) AS b, ceil(1.2) AS c, floor(-1.2) AS d, trunc(1.9) AS e, round(1234, -2) AS f
SELECT greatest(tx_index, 5) AS a, least(tx_index, 5) AS b FROM transactions WHERE slot = 1001 ORDER BY tx_index LIMIT 8
SELECT 7 % 3 AS a, modulo(-7, 3) AS b, intDiv(7, 2) AS c, intDivOrZero(1, 0) AS d, 7 / 2 AS e, gcd(12, 18) AS f
SELECT 1 = 1 AS a, 1 != 2 AS b, 'a' < 'b' AS c, NOT 1 AS d, 1 AND 0 AS e, 1 OR 0 AS f, xor(1, 1) AS g
SELECT success AND fee > 0 AS a, NOT success AS b, success OR is_vote AS c FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT if(success, 'ok', 'failed') AS r, count() AS c FROM transactions GROUP BY r ORDER BY r
SELECT CASE WHEN fee > 5000 THEN 'high' WHEN fee = 5000 THEN 'base' ELSE 'low' END AS f, count() AS c FROM transactions GROUP BY f
SELECT CASE version WHEN 'legacy' THEN 1 WHEN '0' THEN 2 ELSE 3 END AS v, count() AS c FROM transactions GROUP BY v ORDER BY v
SELECT success ? 'y' : 'n' AS x, count() AS c FROM transactions GROUP BY x ORDER BY x
SELECT countIf(success) / count() AS ratio, round(100 * countIf(NOT success) / count(), 2) AS pct FROM transactions
SELECT coalesce(NULL, slot) AS a, ifNull(NULL, 'x') AS b, nullIf(1, 2) AS c, isNull(NULL) AS d FROM blocks ORDER BY slot LIMIT 1
SELECT toString(slot) AS a, toString(block_time) AS b, toString(1.5) AS c, toString(true) AS d FROM blocks ORDER BY slot LIMIT 1
SELECT toUInt8(5) AS a, toUInt16('7') AS b, toInt64(-3) AS c, toFloat64('1.25') AS d, toUInt32(3.9) AS e, toInt8(-1) AS f
SELECT toUInt64OrZero('x') AS a, toInt32OrNull('y') AS b, toFloat64OrNull('1.5') AS c, toUInt8OrDefault('z', 9) AS d
SELECT CAST(slot AS String) AS a, CAST('5' AS UInt8) AS b, slot::Float64 AS c, CAST(1 AS Nullable(Int32)) AS d FROM blocks ORDER BY slot LIMIT 1
SELECT toDecimal64(1.2345, 2) AS a, toDecimal32(5, 1) AS b, toDecimal64(1.5, 2) + toDecimal64(2.25, 2) AS c, toDecimal64(2, 2) * 3 AS d
SELECT sum(toDecimal64(fee, 4)) AS a, avg(toDecimal64(fee, 2)) AS b FROM transactions
SELECT toTypeName(fee) AS a, toTypeName(fee + 1) AS b, toTypeName(block_time) AS c, toTypeName(program_ids) AS d, toTypeName(success) AS e FROM transactions LIMIT 1
SELECT toBool(1) AS a, toBool('false') AS b, true AS c, false AS d
SELECT substring(signature, 1, 8) AS s, length(signature) AS l FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT concat(substring(leader, 1, 4), '...', substring(leader, -4)) AS short FROM blocks ORDER BY slot LIMIT 1
SELECT upper(version) AS u, lower('ABC') AS l, reverse('abc') AS r, trim('  x ') AS t FROM transactions ORDER BY slot, tx_index LIMIT 1
SELECT startsWith(signature, '2') AS a, endsWith(leader, 'V') AS b, position(leader, 'Z') AS c FROM transactions JOIN blocks USING (slot) ORDER BY slot, tx_index LIMIT 2
SELECT count() AS c FROM transactions WHERE signature LIKE '2%' OR signature ILIKE 'A%'
SELECT count() AS c FROM transactions WHERE version NOT LIKE 'leg%' AND fee_payer NOT ILIKE '%zz%'
SELECT splitByChar(',', 'a,b,c') AS a, splitByString('--', 'a--b') AS b, arrayStringConcat(['x', 'y'], '-') AS c
SELECT leftPad('7', 3, '0') AS a, rightPad('7', 3, '.') AS b, format('{} of {}', 'a', 'b') AS c, concat('a', 1, 2.5) AS d
SELECT left('abcdef', 2) AS a, right('abcdef', 2) AS b, substringIndex('a.b.c', '.', 2) AS c, countSubstrings('banana', 'an') AS d
SELECT hex('abc') AS a, hex(255) AS b, unhex('616263') AS c, lower(hex(MD5('a'))) AS d, lower(hex(SHA256('a'))) AS e
SELECT positionCaseInsensitive('Hello', 'LL') AS a, initcap('hello world') AS b, ascii('A') AS c, char(72, 105) AS d
SELECT empty('') AS a, notEmpty([1]) AS b, empty([]) AS c, lengthUTF8('äö') AS d
SELECT has(program_ids, 'Vote111111111111111111111111111111111111111') AS v, count() AS c FROM transactions GROUP BY v ORDER BY v
SELECT hasAny(['a', 'b'], ['b', 'c']) AS a, hasAll([1, 2, 3], [1, 3]) AS b, arrayIntersect([1, 2, 3], [2, 3, 4]) AS c
SELECT arraySort([3, 1, 2]) AS a, arrayReverseSort([3, 1, 2]) AS b, arraySort(x -> -x, [3, 1, 2]) AS c, arrayReverse([1, 2]) AS d
SELECT arrayDistinct([2, 1, 2]) AS a, arrayUniq([1, 1, 2]) AS b, arrayConcat([1], [2, 300]) AS c, arrayFlatten([[1], [2, 3]]) AS d
SELECT arraySum([1, 2, 3]) AS a, arrayAvg([1, 2]) AS b, arrayMin([3, 1]) AS c, arrayMax([3, 1]) AS d, arraySum(x -> x * 2, [1, 2]) AS e
SELECT arrayExists(x -> x > 2, [1, 2, 3]) AS a, arrayAll(x -> x > 0, [1, 2]) AS b, arrayCount(x -> x % 2 = 0, [1, 2, 4]) AS c
SELECT arrayFirst(x -> x > 1, [1, 2, 3]) AS a, arrayFirstIndex(x -> x = 3, [1, 2, 3]) AS b, arrayLast(x -> x < 3, [1, 2, 3]) AS c
SELECT arrayCumSum([1, 2, 3]) AS a, arrayDifference([1, 4, 9]) AS b, arrayZip([1, 2], ['a', 'b']) AS c, range(4) AS d, range(1, 6, 2) AS e
SELECT arrayPushBack([1], 2) AS a, arrayPushFront([2], 1) AS b, arrayPopBack([1, 2]) AS c, arrayPopFront([1, 2]) AS d, arrayResize([1], 3) AS e
SELECT account_keys[1] AS a, account_keys[-1] AS b, account_keys[99] AS c, arrayElement([10, 20], 2) AS d FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT arrayFold((acc, x) -> acc + x, [1, 2, 3], toUInt64(0)) AS a, arrayReduce('max', [1, 5, 2]) AS b, arrayCompact([1, 1, 2, 2, 1]) AS c
SELECT countEqual([1, 2, 1], 1) AS a, arrayEnumerate(['x', 'y']) AS b, arrayWithConstant(3, 'z') AS c
SELECT mapFromArrays(['a', 'b'], [1, 2]) AS m, mapValues(map('x', 5)) AS v, mapContains(map('k', 1), 'k') AS c
SELECT (1, 'a', 2.5) AS t, tupleElement((1, 'a'), 2) AS e, (1, 2) = (1, 2) AS q
SELECT count() AS c FROM transactions WHERE (slot, tx_index) IN ((1001, 0), (1001, 1), (1002, 5))
SELECT count() AS c FROM transactions WHERE (slot, tx_index) IN (SELECT slot, tx_index FROM instructions WHERE inner_index >= 0)
SELECT count() AS c FROM transactions WHERE slot IN (1001, 1002, 1004) AND version IN ('legacy')
SELECT count() AS c FROM transactions WHERE fee_payer IN (SELECT account FROM account_activity WHERE signed)
SELECT count() AS c FROM transactions WHERE slot NOT IN (SELECT slot FROM blocks WHERE slot < 1010)
SELECT count() AS c FROM blocks WHERE EXISTS (SELECT 1 FROM rewards WHERE lamports > 0)
SELECT (SELECT count() FROM transactions) AS t, (SELECT count() FROM blocks) AS b
SELECT slot, tx_count, tx_count > (SELECT avg(tx_count) FROM blocks) AS above FROM blocks ORDER BY slot LIMIT 3
SELECT DISTINCT version FROM transactions ORDER BY version
SELECT DISTINCT version, success FROM transactions ORDER BY version, success
SELECT DISTINCT ON (version) version, slot, tx_index FROM transactions ORDER BY version, slot, tx_index
SELECT slot AS s FROM blocks UNION ALL SELECT slot AS s FROM rewards ORDER BY s LIMIT 4
SELECT * FROM (SELECT slot FROM blocks UNION DISTINCT SELECT slot FROM rewards) ORDER BY slot LIMIT 4
SELECT slot FROM (SELECT slot FROM blocks EXCEPT SELECT slot FROM blocks WHERE slot > 1003) ORDER BY slot
SELECT count() AS c, max(slot) AS newest FROM (SELECT slot FROM blocks INTERSECT SELECT slot FROM rewards WHERE slot < 1004)
SELECT arrayJoin([16927863322537952870, 16927863322537952871]) AS x WHERE x = '16927863322537952870'
SELECT arrayJoin([16927863322537952870, 16927863322537952871]) AS x WHERE x IN ('16927863322537952870')
SELECT arrayJoin([16927863322537952870, 16927863322537952871]) AS x, CASE x WHEN '16927863322537952870' THEN 1 ELSE 2 END AS c, nullIf(x, '16927863322537952871') AS n
SELECT arrayJoin([16927863322537952870, 16927863322537952871]) AS x, x > '16927863322537952870' AS g, '16927863322537952871' <= x AS l
SELECT materialize(toInt64(-9007199254740993)) = '-9007199254740992' AS a, materialize(toInt128('170141183460469231731687303715884105727')) = '170141183460469231731687303715884105726' AS b
SELECT (1, 'a') IN ((1, 'a')) AS a, ((1, 2), 3) NOT IN (((1, 2), 3)) AS b
SELECT hex(a) AS h FROM (SELECT unhex('ff00') AS a UNION ALL SELECT 'x' UNION ALL SELECT NULL) ORDER BY h
SELECT hex(a) AS h FROM (SELECT 'x' AS a UNION DISTINCT SELECT unhex('ff00') UNION DISTINCT SELECT unhex('ff00')) ORDER BY h
SELECT hex(coalesce(NULL, unhex('ff'))) AS a, hex(ifNull(nullIf('a', 'a'), unhex('ff'))) AS b, length(ifNull(base58Decode('2'), '')) AS c
SELECT startsWith(base58Decode('3Bxs411Dtc7pkFQj'), unhex('02')) AS a, startsWith(unhex('f002'), unhex('0f')) AS b, endsWith(unhex('ff02'), unhex('02')) AS c, endsWith('', unhex('ff')) AS d
SELECT hex((unhex('ff'), 1).1) AS a, hex([unhex('ff'), 'a'][1]) AS b, hex(map('k', unhex('ff'))['k']) AS c, hex(left(unhex('ff0203'), 2)) AS d, hex(right(unhex('ff0203'), 1)) AS e
SELECT hex(argMax(k, n)) AS a, hex(argMin(k, n)) AS b, hex(groupArray(k)[1]) AS c, hex(any(k)) AS d FROM (SELECT unhex('ff00') AS k, 1 AS n)
SELECT unhex('61') IN (SELECT 'a') AS a, 'a' IN (SELECT unhex('61')) AS b, hex(transform(1, [1], [unhex('ff')], 'z')) AS c
SELECT hex(substring(base58Decode(data), 1, 1)) AS first, countIf(startsWith(base58Decode(data), unhex('02'))) AS n FROM instructions WHERE data != '' GROUP BY first ORDER BY first LIMIT 3
SELECT x FROM (SELECT arrayJoin([1, 1, 2]) AS x EXCEPT SELECT 1) ORDER BY x
SELECT x FROM (SELECT arrayJoin([1, 1, 2]) AS x EXCEPT DISTINCT SELECT 1) ORDER BY x
SELECT x FROM (SELECT arrayJoin([1, 1, 2, 2]) AS x INTERSECT SELECT arrayJoin([1, 2, 2, 2])) ORDER BY x
SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 2 INTERSECT SELECT 3) ORDER BY x
SELECT x FROM (SELECT 1 AS x EXCEPT SELECT 1 INTERSECT SELECT 2) ORDER BY x
SELECT x FROM (SELECT 2 AS x INTERSECT SELECT 2 UNION ALL SELECT 3 INTERSECT SELECT 3) ORDER BY x
WITH t AS (SELECT 1 AS a) SELECT a FROM t UNION ALL SELECT a FROM t UNION ALL (SELECT a FROM t UNION ALL SELECT a FROM t)
WITH t AS (SELECT 1 AS a), 5 AS c SELECT a FROM t EXCEPT SELECT c INTERSECT SELECT a FROM t
SELECT a.k AS k, b.v AS v FROM (SELECT number % 3 AS k FROM numbers(9)) AS a ANY INNER JOIN (SELECT 1 AS k, 7 AS v UNION ALL SELECT 1, 7 UNION ALL SELECT 2, 8) AS b ON a.k = b.k ORDER BY k
SELECT count() AS n FROM transactions AS t ANY INNER JOIN instructions AS i ON t.slot = i.slot
SELECT number % 2 AS a, number AS b FROM numbers(5) ORDER BY a, b WITH FILL
SELECT number % 2 AS a, number * 2 AS b, 'x' AS c FROM numbers(5) ORDER BY a DESC, b WITH FILL FROM 0 TO 12 STEP 2
SELECT number % 2 AS a, number % 3 AS d, number * 2 AS b FROM numbers(8) ORDER BY a, d, b DESC WITH FILL
SELECT toString(number % 2) AS a, toDateTime('2026-01-01 00:00:00') + number * 60 AS d, count() AS n FROM numbers(5) GROUP BY a, d ORDER BY a, d WITH FILL STEP INTERVAL 1 MINUTE
SELECT number, sum(number) OVER (ORDER BY number RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM numbers(4) ORDER BY number
SELECT x, count() OVER (ORDER BY x DESC RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS s FROM (SELECT toUInt8(number + 252) AS x FROM numbers(4)) ORDER BY x
SELECT a FROM (SELECT 1 AS a UNION ALL SELECT 300 UNION ALL SELECT -5) ORDER BY a
SELECT s.slot, s.n FROM (SELECT slot, count() AS n FROM transactions GROUP BY slot) AS s WHERE s.n > 1 ORDER BY s.slot LIMIT 3
SELECT max(n) AS m, min(n) AS l, avg(n) AS a FROM (SELECT fee_payer, count() AS n FROM transactions GROUP BY fee_payer)
WITH per AS (SELECT slot, countIf(NOT success) AS failed FROM transactions GROUP BY slot) SELECT slot, failed FROM per WHERE failed > 0 ORDER BY failed DESC, slot LIMIT 3
WITH a AS (SELECT slot FROM blocks WHERE slot < 1005) SELECT count() AS c FROM transactions WHERE slot IN (SELECT slot FROM a)
WITH x AS (SELECT 1 AS v), y AS (SELECT v + 1 AS v FROM x) SELECT x.v AS a, y.v AS b FROM x CROSS JOIN y
SELECT t.slot, t.tx_index, i.program_id FROM transactions AS t JOIN instructions AS i ON t.slot = i.slot AND t.tx_index = i.tx_index ORDER BY t.slot, t.tx_index, i.ix_index, i.inner_index LIMIT 4
SELECT b.leader, count() AS c, sum(t.fee) AS f FROM blocks AS b INNER JOIN transactions AS t ON b.slot = t.slot GROUP BY b.leader
SELECT r.pubkey, b.slot FROM rewards AS r RIGHT JOIN blocks AS b ON r.slot = b.slot ORDER BY b.slot LIMIT 2
SELECT b.slot, count(r.slot) AS n FROM blocks b LEFT JOIN rewards r ON r.slot = b.slot + 1 GROUP BY b.slot ORDER BY b.slot LIMIT 4
SELECT a.slot AS x, b.slot AS y FROM blocks a, blocks b WHERE a.slot + 1 = b.slot ORDER BY x LIMIT 3
SELECT a.slot, b.slot FROM blocks a ALL INNER JOIN blocks b ON a.slot = b.parent_slot ORDER BY a.slot LIMIT 3
SELECT t.slot, b.tx_count FROM (SELECT DISTINCT slot FROM transactions) AS t ANY INNER JOIN blocks AS b USING (slot) ORDER BY t.slot LIMIT 3
SELECT count() AS c FROM instructions AS i SEMI LEFT JOIN token_transfers AS t ON i.signature = t.signature
SELECT count() AS c FROM transactions AS t ANTI LEFT JOIN token_transfers AS x ON t.signature = x.signature
SELECT slot, max(tx_index) OVER (PARTITION BY slot) AS m FROM transactions ORDER BY slot, tx_index LIMIT 3
SELECT slot, tx_count, tx_count - lagInFrame(tx_count, 1, tx_count) OVER (ORDER BY slot) AS d FROM blocks ORDER BY slot LIMIT 5
SELECT fee_payer, slot, row_number() OVER (PARTITION BY fee_payer ORDER BY slot, tx_index) AS nth FROM transactions ORDER BY fee_payer, nth LIMIT 5
SELECT * FROM (SELECT slot, vote_tx_count, rank() OVER (ORDER BY vote_tx_count DESC, slot) AS r FROM blocks) WHERE r <= 3 ORDER BY r
SELECT slot, any(leader) OVER () AS l, min(slot) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS lo FROM blocks ORDER BY slot LIMIT 3
SELECT slot, groupArray(slot) OVER (ORDER BY slot ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS g FROM blocks ORDER BY slot LIMIT 3
SELECT m, c, sum(c) OVER (ORDER BY m) AS running FROM (SELECT toStartOfMinute(block_time) AS m, count() AS c FROM transactions GROUP BY m) ORDER BY m
SELECT version, slot, c FROM (SELECT version, slot, count() AS c FROM transactions GROUP BY version, slot) ORDER BY version, c DESC, slot LIMIT 2 BY version
SELECT fee_payer, arraySort(groupArray(slot)) AS slots, length(slots) AS n FROM transactions GROUP BY fee_payer ORDER BY n DESC, fee_payer LIMIT 3
SELECT fee_payer, min(block_time) AS first, max(block_time) AS last, dateDiff('second', first, last) AS span FROM transactions GROUP BY fee_payer ORDER BY span DESC, fee_payer LIMIT 3
SELECT fee_payer, countIf(gap > 2) + 1 AS sessions FROM (SELECT fee_payer, slot - lagInFrame(slot, 1, slot) OVER (PARTITION BY fee_payer ORDER BY slot, tx_index) AS gap FROM transactions) GROUP BY fee_payer ORDER BY sessions DESC, fee_payer LIMIT 5
SELECT length(signers) AS n, count() AS c FROM transactions GROUP BY n ORDER BY n
SELECT arrayJoin(arrayDistinct(arrayConcat(signers, program_ids))) AS x, count() AS c FROM transactions GROUP BY x ORDER BY c DESC, x LIMIT 3
SELECT slot, arrayJoin(arraySlice(account_keys, 1, 2)) AS k FROM transactions WHERE slot = 1001 ORDER BY tx_index, k LIMIT 4
SELECT tx_index, arrayJoin(range(3)) AS i, tx_index + i AS s FROM transactions WHERE slot = 1001 ORDER BY tx_index, i LIMIT 5
SELECT sum(length(program_ids)) AS a, sum(arrayCount(x -> startsWith(x, 'T'), program_ids)) AS b FROM transactions
SELECT arrayMap(x -> (x, length(x)), signers) AS t FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT arrayFilter((x, i) -> i <= 2, account_keys, arrayEnumerate(account_keys)) AS a FROM transactions ORDER BY slot, tx_index LIMIT 2
SELECT d8, count() AS c FROM instructions WHERE d8 != 0 GROUP BY d8 ORDER BY c DESC, d8 LIMIT 3
SELECT stack_height, inner_index >= 0 AS inner_, count() AS c FROM instructions GROUP BY stack_height, inner_ ORDER BY stack_height, inner_
SELECT program_id, outer_program_id, count() AS c FROM instructions WHERE program_id != outer_program_id GROUP BY program_id, outer_program_id ORDER BY c DESC, program_id, outer_program_id LIMIT 3
SELECT program_id, avg(length(accounts)) AS a FROM instructions GROUP BY program_id ORDER BY a DESC, program_id LIMIT 3
SELECT from_owner, to_owner, sum(amount) AS s FROM token_transfers GROUP BY from_owner, to_owner ORDER BY s DESC, from_owner, to_owner LIMIT 3
SELECT mint, sumIf(amount, kind = 'transferChecked') AS a, sumIf(amount, kind = 'transfer') AS b FROM token_transfers WHERE mint != '' GROUP BY mint ORDER BY a DESC, mint LIMIT 3
SELECT kind, quantile(0.5)(amount) AS p50, quantile(0.99)(amount) AS p99 FROM token_transfers GROUP BY kind ORDER BY kind
SELECT kind, round(amount / pow(10, decimals), 6) AS ui FROM token_transfers ORDER BY amount DESC, signature, ix_index, inner_index LIMIT 3
SELECT reward_type, sum(lamports) AS l, count() AS c FROM rewards GROUP BY reward_type
SELECT pubkey, argMax(post_balance, slot) AS last FROM rewards GROUP BY pubkey
SELECT slot, lamports, commission FROM rewards WHERE commission < 0 ORDER BY slot LIMIT 2
SELECT count() AS c, max(slot) AS m FROM accounts
SELECT owner, count() AS c FROM accounts GROUP BY owner
SELECT block_height - slot AS d, count() AS c FROM blocks GROUP BY d ORDER BY d
SELECT slot - parent_slot AS step, count() AS c FROM blocks GROUP BY step ORDER BY step
SELECT max(slot) - min(slot) + 1 - count() AS skipped FROM blocks
SELECT sum(vote_tx_count) / sum(tx_count) AS share FROM blocks
SELECT toUnixTimestamp(block_time) AS u, toUnixTimestamp(block_time) % 60 AS s FROM blocks ORDER BY slot LIMIT 2
SELECT toHour(block_time) AS h, toDayOfWeek(block_time) AS d, count() AS c FROM transactions GROUP BY h, d ORDER BY h, d
SELECT concat(toString(toHour(block_time)), ':', leftPad(toString(toMinute(block_time)), 2, '0')) AS hm, count() AS c FROM blocks GROUP BY hm ORDER BY hm
SELECT toDate(block_time) AS d, uniq(fee_payer) AS a, count() AS t, t / a AS per FROM transactions GROUP BY d ORDER BY d
SELECT formatReadableSize(1048576) AS a, formatReadableQuantity(1234567) AS b, bar(5, 0, 10, 10) AS c
SELECT toStartOfMinute(block_time) AS t, version, count() AS c FROM transactions GROUP BY t, version ORDER BY t, version
SELECT slot, tx_index, fee FROM transactions ORDER BY fee DESC, slot DESC, tx_index LIMIT 3
SELECT slot FROM blocks ORDER BY tx_count DESC, slot ASC LIMIT 3 WITH TIES
SELECT slot, leader FROM blocks WHERE leader = '' OR slot = 1001
SELECT TOP 2 slot FROM blocks ORDER BY slot
SELECT slot FROM blocks ORDER BY slot OFFSET 3 ROWS FETCH FIRST 2 ROWS ONLY
SELECT count() AS c FROM transactions FINAL WHERE fee = 5000
SELECT slot AS a, a * 2 AS b, b + a AS c FROM blocks ORDER BY a LIMIT 2
SELECT `slot`, "leader" FROM blocks ORDER BY `slot` LIMIT 1
SELECT 'it''s' AS a, 'tab\there' AS b, 'back\\slash' AS c, 0xff AS d, 1e3 AS e, 1_000 AS f
SELECT t.* EXCEPT (account_keys, log_messages, recent_blockhash) FROM transactions AS t ORDER BY slot, tx_index LIMIT 1
SELECT count(), sum(fee), min(slot), max(block_time) FROM transactions
SELECT 1, 'a', [1, 2], (1, 'b'), NULL, true, 1.5, -3
SELECT fee + 1, upper(version), length(signers), fee_payer = 'x' FROM transactions ORDER BY slot, tx_index LIMIT 1
SELECT avgOrNull(fee) AS a, sumOrNull(fee) AS b, maxOrNull(fee) AS c FROM transactions WHERE 0
SELECT countIf(success AND version = '0') AS a, count() FILTER (WHERE NOT success) AS b FROM transactions
SELECT groupArrayIf(slot, slot < 1003) AS a FROM (SELECT slot FROM blocks ORDER BY slot)
SELECT quantileIf(0.5)(compute_units, success) AS a, quantileExactIf(0.5)(compute_units, NOT success) AS b FROM transactions
SELECT sumDistinct(fee) AS a, countDistinctIf(fee_payer, success) AS b FROM transactions
SELECT entropy(version) AS e FROM transactions
SELECT isNaN(0 / 0) AS a, isInfinite(1 / 0) AS b, isFinite(1) AS c, 1 / 0 > 5 AS d
SELECT pi() > 3 AS a, round(e(), 4) AS b, cbrt(27) AS c, degrees(pi()) AS d
SELECT reinterpretAsUInt64(base58Decode('Cn8eVZg')) AS a, length(base58Decode(fee_payer)) AS n FROM transactions ORDER BY slot, tx_index LIMIT 1
SELECT width_bucket(compute_units, 0, 200000, 4) AS b, count() AS c FROM transactions GROUP BY b ORDER BY b
SELECT arrayMap(x -> x * 2, groupArray(slot)) AS a FROM (SELECT slot FROM blocks ORDER BY slot LIMIT 3)
SELECT version, arrayStringConcat(arraySort(groupUniqArray(toString(success))), '|') AS s FROM transactions GROUP BY version ORDER BY version
SELECT toStartOfInterval(block_time, INTERVAL 4 SECOND) AS t, avg(c) AS a FROM (SELECT block_time, slot, count() AS c FROM transactions GROUP BY block_time, slot) GROUP BY t ORDER BY t
SELECT slot FROM blocks WHERE slot BETWEEN 1002 AND 1004 AND NOT (slot = 1004) ORDER BY slot
SELECT slot FROM blocks WHERE block_time > toDateTime('2023-11-14 22:20:03') ORDER BY slot LIMIT 2
SELECT if(empty(err), 'none', JSONExtractString(err, 'InstructionError', 2)) AS e, count() AS c FROM transactions GROUP BY e ORDER BY e
SELECT JSONExtractInt(err, 'InstructionError', 2, 'Custom') AS code, count() AS c FROM transactions WHERE NOT success GROUP BY code
SELECT JSON_VALUE('{"a":{"b":"c"}}', '$.a.b') AS v, simpleJSONExtractUInt('{"n":7}', 'n') AS n, toJSONString([1, 2]) AS j
SELECT count() AS c FROM transactions WHERE tx_index NOT IN (NULL, 2)
SELECT count() AS c FROM transactions WHERE tx_index NOT IN (SELECT nullIf(tx_index, 1) FROM transactions WHERE tx_index < 3)
SELECT 1 NOT IN (NULL) AS a, 1 IN (nullIf(1, 1), 2) AS b, nullIf(1, 1) NOT IN (NULL, 2) AS c
SELECT has([1, NULL], NULL) AS a, has([1], NULL) AS b, indexOf([1, NULL], NULL) AS c
SELECT substring('hello', 0) AS a, substring('hello', 2, -1) AS b, substring('hello', -4, -1) AS c
SELECT toHour(block_time, 'Asia/Tokyo') AS h, toDayOfMonth(block_time, 'Asia/Tokyo') AS d, toMinute(block_time, 'Asia/Kolkata') AS m, toYear(block_time, 'Asia/Tokyo') AS y FROM blocks ORDER BY slot LIMIT 3
SELECT toDate(block_time, 'Asia/Tokyo') AS d, count() AS c FROM transactions GROUP BY d ORDER BY d
SELECT toStartOfDay(block_time, 'America/New_York') AS d, toStartOfHour(block_time, 'Asia/Kolkata') AS h, toStartOfMinute(block_time, 'Asia/Kathmandu') AS m FROM blocks ORDER BY slot LIMIT 2
SELECT toStartOfInterval(block_time, INTERVAL 6 HOUR, 'America/New_York') AS t, toStartOfInterval(block_time, INTERVAL 5 HOUR) AS u, date_trunc('day', block_time, 'Asia/Tokyo') AS d FROM blocks ORDER BY slot LIMIT 1
SELECT toStartOfMonth(toDateTime('2026-11-01 03:00:00'), 'America/New_York') AS a, toMonday(toDateTime('2026-11-09 03:00:00'), 'America/New_York') AS b, toLastDayOfMonth(toDateTime('2026-11-01 03:00:00'), 'America/New_York') AS c
SELECT toYYYYMM(block_time, 'Asia/Tokyo') AS a, toYYYYMMDD(block_time, 'Asia/Tokyo') AS b, toYYYYMMDDhhmmss(block_time, 'Asia/Tokyo') AS c, toUnixTimestamp(block_time, 'Asia/Tokyo') AS d FROM blocks ORDER BY slot LIMIT 1
SELECT dateDiff('day', toDateTime('2026-11-11 14:00:00'), toDateTime('2026-11-11 16:00:00'), 'Asia/Tokyo') AS a, dateDiff('hour', toDateTime('2026-11-11 14:10:00'), toDateTime('2026-11-11 14:40:00'), 'Asia/Kolkata') AS b, age('day', toDateTime('2026-03-08 04:00:00'), toDateTime('2026-03-09 03:30:00'), 'America/New_York') AS c
SELECT dateDiff('hour', toDateTime('2026-11-01 00:07:00'), toDateTime('2026-11-01 00:00:00') + number * 600, 'America/New_York') AS a, toUnixTimestamp(toStartOfHour(toDateTime('2026-11-01 00:00:00') + number * 600, 'America/New_York')) AS b FROM numbers(100)
SELECT dateDiff('week', toDate('2026-11-01'), toDate('2026-10-01') + number) AS a FROM numbers(60)
SELECT parseDateTimeBestEffort('2026-11-11 00:00:00', 'Asia/Tokyo') AS a, parseDateTimeBestEffort('2026-11-11T00:00:00Z', 'Asia/Tokyo') AS b, parseDateTimeBestEffort('20261111') AS c, parseDateTimeBestEffortOrNull('nonsense', 'Asia/Tokyo') AS d, toDateTimeOrZero('2026-11-11 00:00:00', 'Asia/Tokyo') AS e
SELECT YYYYMMDDhhmmssToDateTime(20261111101112, 'Asia/Tokyo') AS a, fromUnixTimestamp(1700000000, '%Y-%m-%d %H:%i:%S', 'Asia/Tokyo') AS b, toTypeName(now64(6, 'Asia/Tokyo')) AS c, formatDateTime(toDate('2026-11-11'), '%d %H', 'America/New_York') AS d
SELECT toUnixTimestamp(toDateTime('2026-11-11 22:00:00', 'Asia/Tokyo')) AS a, toRelativeHourNum(toDateTime('2026-11-11 22:00:00'), 'Asia/Kolkata') AS b, addHours(toDateTime('2026-03-07 23:00:00', 'America/New_York'), 12) AS c, toTime(toDateTime('2026-11-11 03:00:00'), 'Asia/Tokyo') AS d
SELECT toWeek(toDate('2015-12-20') + number, 0) AS a, toWeek(toDate('2015-12-20') + number, 1) AS b, toWeek(toDate('2015-12-20') + number, 2) AS c, toWeek(toDate('2015-12-20') + number, 3) AS d, toWeek(toDate('2015-12-20') + number, 4) AS e FROM numbers(3000)
SELECT toWeek(toDate('2015-12-20') + number, 5) AS a, toWeek(toDate('2015-12-20') + number, 6) AS b, toWeek(toDate('2015-12-20') + number, 7) AS c, toWeek(toDate('2015-12-20') + number, 8) AS d, toWeek(toDate('2015-12-20') + number, 9) AS e FROM numbers(3000)
SELECT toYearWeek(toDate('2015-12-20') + number) AS a, toYearWeek(toDate('2015-12-20') + number, 1) AS b, toYearWeek(toDate('2015-12-20') + number, 5) AS c, toYearWeek(toDate('2015-12-20') + number, 6) AS d, toYearWeek(toDate('2015-12-20') + number, 8) AS e FROM numbers(3000)
SELECT toStartOfWeek(block_time, 0, 'Asia/Tokyo') AS a, toStartOfWeek(block_time, 3) AS b, toLastDayOfWeek(block_time, 4) AS c, toDayOfWeek(block_time, 1, 'Asia/Tokyo') AS d, toDayOfWeek(block_time, 3) AS e FROM blocks ORDER BY slot LIMIT 1
SELECT program_ids[length(program_ids)] AS last, program_ids[indexOf(program_ids, program_ids[1])] AS same, program_ids[tx_index + 1] AS other FROM transactions ORDER BY slot, tx_index LIMIT 5
SELECT [10, 20, 30][number + 1] AS a, arrayElementOrNull([10, 20, 30], number) AS b, [10, 20][nullIf(number, 2)] AS c FROM numbers(5)
SELECT [1, 2, 3][18446744073709551615] AS a, arrayElementOrNull([1, 2, 3], 18446744073709551615) AS b
SELECT first_value(nullIf(number, 0)) AS a, anyLast(nullIf(number, 2)) AS b, anyLastIf(nullIf(number, 1), number < 2) AS c FROM numbers(3)
SELECT first_value(nullIf(number, 0)) OVER (ORDER BY number) AS a, last_value(nullIf(number, 2)) OVER (ORDER BY number) AS b FROM numbers(4) ORDER BY number
SELECT quantileExact(0.5)(nullIf(number, 0)) AS a, quantileExactLow(0.5)(nullIf(number, 0)) AS b, quantileExactHigh(0.5)(nullIf(number, 0)) AS c, quantilesExact(0.1, 0.9)(nullIf(number, 0)) AS d, quantileExactWeighted(0.5)(nullIf(number, 0), 1) AS e FROM numbers(10)
SELECT avg(log(nullIf(number, 0))) AS a, max(log2(nullIf(number, 2))) AS b, argMax(number, nullIf(number, 2)) AS c FROM numbers(3)
SELECT groupConcat(',', 2)(number) AS a, groupConcat(',', 2)(nullIf(number, 0)) AS b, groupConcatIf(',', 3)(number, number > 1) AS c FROM numbers(9)
SELECT round(toInt64(number) * 5 - 250, -1) AS a, floor(toInt64(number) * 5 - 250, -1) AS b, ceil(toInt64(number) * 5 - 250, -1) AS c, trunc(toInt64(number) * 5 - 250, -1) AS d, roundBankers(toInt64(number) * 5 - 250, -1) AS e FROM numbers(100)
SELECT round(5000, -4) AS a, round(25000, -4) AS b, floor(18446744073709551615, -3) AS c, ceil(5, -20) AS d, floor(-5, -3) AS e
SELECT arrayFold((acc, x) -> acc + arrayFold((b, y) -> b + x * y, [1, 2], toInt64(0)), [1, 2, 3], toInt64(0)) AS a, arrayFold((acc, x) -> acc + countEqual([1, 2, 2], x), [1, 2, 3], toUInt64(0)) AS b
SELECT arrayFold((a, x) -> a + length(x), ['xx', 'yyy'], toUInt64(0)) AS a, arrayFold((a, x, y) -> a + x * y, [1, 2, 3], [4, 5, 6], toInt64(0)) AS b, arrayFold((a, x) -> arrayPushBack(a, x), [1, 2], emptyArrayUInt64()) AS c
SELECT mapFilter((k, v) -> mapExists((k2, v2) -> v2 > v, map('a', 1, 'b', 2)), map('x', 0, 'z', 5)) AS a
SELECT isNaN(sqrt(-1)) AS a, isNaN(asin(2)) AS b, sqrt(nullIf(4, 4)) AS c
SELECT count() AS c FROM (SELECT 1 AS k) a LEFT JOIN (SELECT 2 AS k, [1] AS a) b ON a.k = b.k WHERE empty(b.a)
SELECT count() AS c FROM (SELECT 1 AS k) a ANY LEFT JOIN (SELECT 2 AS k, [1] AS a) b ON a.k = b.k WHERE NOT has(b.a, 7)
SELECT b.a, empty(b.a) AS e, isNull(b.a) AS n, length(b.a) AS l FROM (SELECT 1 AS k) a LEFT JOIN (SELECT 2 AS k, [1] AS a) b ON a.k = b.k
SELECT a.x, empty(a.x) AS e, b.k FROM (SELECT 1 AS k, [1, 2] AS x) a RIGHT JOIN (SELECT 2 AS k) b ON a.k = b.k
SELECT a.k, b.k, length(a.x) AS p, length(b.y) AS q FROM (SELECT 1 AS k, [1] AS x) a FULL JOIN (SELECT 2 AS k, ['a', 'b'] AS y) b ON a.k = b.k ORDER BY p, q
SELECT b.a AS g, count() AS c FROM (SELECT arrayJoin([1, 2, 3]) AS k) a LEFT JOIN (SELECT arrayJoin([2, 3]) AS k, emptyArrayUInt64() AS a) b ON a.k = b.k GROUP BY g
SELECT b.t.1, b.t.2, isNull(b.t) AS n FROM (SELECT 1 AS k) a LEFT JOIN (SELECT 2 AS k, (1, 'x') AS t) b ON a.k = b.k
SELECT b.m, isNull(b.m) AS n, length(b.m) AS l FROM (SELECT 1 AS k) a LEFT JOIN (SELECT 2 AS k, map('a', 1) AS m) b ON a.k = b.k
SELECT 0/0 > 1 AS a, 0/0 = 0/0 AS b, 0/0 >= 5 AS c, 0/0 != 0/0 AS d, 1 < 0/0 AS e, 0/0 <=> 0/0 AS f, isDistinctFrom(0/0, 0/0) AS g
SELECT x FROM (SELECT arrayJoin([0/0, 1., 2.]) AS x) WHERE NOT (x > 1.5) ORDER BY x
SELECT x FROM (SELECT arrayJoin([1., 0/0, NULL, 2.]) AS x) ORDER BY x DESC
SELECT x FROM (SELECT arrayJoin([1., 0/0, NULL, 2.]) AS x) ORDER BY x NULLS FIRST
SELECT x, rank() OVER (ORDER BY x DESC) AS r FROM (SELECT arrayJoin([1., 0/0, 2.]) AS x) ORDER BY r
SELECT countIf(x > 0.5) AS c, max(x) AS a, min(x) AS b, argMax(y, x) AS d FROM (SELECT arrayJoin([(1., 'a'), (0/0, 'b'), (3., 'c')]) AS p, p.1 AS x, p.2 AS y)
SELECT toString(0/0) AS a, concat('x', 0/0) AS b, arrayStringConcat([0/0, 1.], ',') AS c, toString([0/0]) AS d
SELECT program_id, countIf(stack_height > 1) / countIf(stack_height > 2) AS r FROM instructions GROUP BY program_id ORDER BY r DESC, program_id LIMIT 5
WITH toDateTime('2024-01-01 00:00:00', 'Asia/Tokyo') AS x SELECT x = '2024-01-01 00:00:00' AS a, x IN ('2024-01-01 00:00:00', '2023-01-01 00:00:00') AS b, x = toDate('2024-01-01') AS c, x < toDate('2024-01-02') AS d
WITH toDateTime64('2024-01-01 00:00:00.500', 3, 'Asia/Tokyo') AS x SELECT x = '2024-01-01 00:00:00.500' AS a, x > '2024-01-01 00:00:00' AS b, x > toDate('2024-01-01') AS c
SELECT (x, 1) IN (('2024-01-01 00:00:00', 1), ('2024-01-02 00:00:00', 300)) AS a, (x, 1) < ('2024-01-01 00:00:01', 1) AS b, x IN (SELECT toDate('2024-01-01')) AS c FROM (SELECT toDateTime('2024-01-01 00:00:00', 'Asia/Tokyo') AS x)
SELECT CAST('2024-01-01 00:00:00' AS DateTime('Asia/Tokyo')) AS a, toUnixTimestamp(a) AS u, CAST(a AS Date) AS d, CAST(a AS DateTime('UTC')) AS e, CAST(toDate('2024-01-01') AS DateTime('Asia/Tokyo')) AS f
SELECT CAST(1704034800 AS DateTime('Asia/Tokyo')) AS a, toDateTime64(1704034800, 3, 'Asia/Tokyo') AS b, toDateTime64(toDate('2024-01-01'), 3, 'Asia/Tokyo') AS c
SELECT if(slot > 0, toDate(block_time), toTimeZone(block_time, 'Asia/Tokyo')) AS a, greatest(toDate('2024-01-02'), toTimeZone(block_time, 'Asia/Tokyo')) AS b FROM blocks ORDER BY slot LIMIT 2
SELECT toStartOfDay(block_time, 'Europe/Berlin') AS d, count() AS c FROM blocks GROUP BY d HAVING d >= '2023-11-14 00:00:00' ORDER BY d
SELECT formatDateTime(block_time, '%F %T %z', 'Asia/Tokyo') AS a, formatDateTime(block_time, '%z|%%z') AS b, formatDateTime(block_time, '%H%z', 'America/St_Johns') AS c, formatDateTime(block_time, '%c|%e|%k|%l') AS d FROM blocks ORDER BY slot LIMIT 2
SELECT stddevPop(DISTINCT stack_height) AS a, quantileExact(0.5)(DISTINCT stack_height) AS b, median(DISTINCT stack_height) AS c, sumCount(DISTINCT stack_height) AS d, groupBitXor(DISTINCT stack_height) AS e FROM instructions
SELECT medianDistinct(fee) AS a, varSampDistinct(fee) AS b, entropyDistinct(fee) AS c, stddevPopIf(DISTINCT fee, success) AS d, groupArraySorted(3)(DISTINCT fee) AS e FROM transactions
SELECT corr(DISTINCT x, y) AS a, covarPop(DISTINCT x, y) AS b, maxIntersections(DISTINCT x, y) AS c, quantileExactWeighted(0.5)(DISTINCT x, y) AS d FROM (SELECT arrayJoin([(1, 2), (1, 2), (9, 3), (4, 8)]) AS p, p.1 AS x, p.2 AS y)
SELECT CAST(2.999 AS Decimal(9, 2)) AS a, -2.999::Decimal(9, 2) AS b, CAST('1.239' AS Decimal(9, 2)) AS c, toDecimal64OrNull('1.239', 2) AS d, toDecimal64(toDecimal64('1.239', 3), 2) AS e, toDecimal64('12345e-3', 2) AS f
SELECT toString(toDecimal64(123456789012345678, 0) / 1) AS a, toString(toDecimal128(123456789012345678, 9) / 1000000000) AS b, 1 / toDecimal64('3', 2) AS c, toDecimal64('-10', 4) / toDecimal64('0.3', 2) AS d
SELECT sum(toDecimal128(fee, 9)) / 1000000000 AS sol, sum(toDecimal64(fee, 2)) / count() AS a FROM transactions
SELECT substring(s, position(s, ':')) AS a, substring(s, position(s, ':'), 3) AS b, substr(s, 2, length(s) - 5) AS c FROM (SELECT arrayJoin(['none', 'a:bc', 'abc', '']) AS s)
SELECT arrayMap(p -> arrayMap(l -> substring('hello', p, l), range(-7, 8)), range(-7, 8)) AS a, arrayMap(p -> substring('hello', p), range(-7, 8)) AS b
SELECT arrayMap(p -> arrayMap(l -> hex(substring(unhex('C3A4FF00'), p, l)), range(-5, 6)), range(-5, 6)) AS a, hex(substring(unhex('C3A4FF00'), -3, 2)) AS b
SELECT arrayMap(p -> arrayMap(l -> substringUTF8('hällo', p, l), range(-7, 8)), range(-7, 8)) AS a
SELECT a, b FROM (SELECT [1] AS x, emptyArrayUInt64() AS y) LEFT ARRAY JOIN x AS a, y AS b
SELECT (number * 100, 1) IN (SELECT 5, 1) AS a, (number * 100, 'x') NOT IN (SELECT 200, 'x') AS b FROM numbers(4)
SELECT ('5', 1) IN (SELECT 5, 1) AS a, (5, 1) IN (SELECT '5', 1) AS b, (materialize('x'), 1) IN (SELECT 5, 1) AS c, (toInt64(-1), 1) IN (SELECT toUInt64(18446744073709551615), 1) AS d, (1, NULL) IN (SELECT 1, NULL) AS e
SELECT (slot, tx_index) IN (SELECT max(slot), 0 FROM transactions) AS a, count() AS c FROM transactions GROUP BY a ORDER BY a
SELECT arrayMap(i -> position('äbcabc', 'b', i), range(0, 11)) AS a, arrayMap(i -> positionUTF8('äbcäbc', 'b', i), range(0, 9)) AS b, arrayMap(i -> locate('b', 'abcabc', i), range(0, 9)) AS c, arrayMap(i -> positionCaseInsensitive('aBcabc', 'b', i), range(0, 9)) AS d
SELECT arrayMap(i -> position('abc', '', i), range(0, 7)) AS a, position('aäb', '', 3) AS b, position('äa', 'ä', 2) AS c, position(materialize('abcabc'), materialize('b'), materialize(toUInt8(3))) AS d, position(toNullable('abc'), 'c', 2) AS e
SELECT leader, position(leader, substring(leader, 3, 1), 4) AS p FROM blocks ORDER BY slot LIMIT 1 + 1 OFFSET 6 / 3
SELECT number FROM numbers(10) ORDER BY number LIMIT -1 + (5 % 3) * 2, intDiv(5, 2)
SELECT hex(toInt8(-1)) AS a, hex(toInt16(-256)) AS b, hex(toInt32(-2)) AS c, hex(toInt64(-1)) AS d, hex(toInt32(255)) AS e, hex(-1) AS f, bin(toInt16(-2)) AS g, bin(5) AS h, hex(toInt128(-1)) AS i
SELECT CAST([1.7] AS Array(Int64)) AS a, CAST([-1.7, 2.5] AS Array(Int32)) AS b, CAST([1.5, 2.999] AS Array(Decimal(9, 2))) AS c, CAST([[1.7], [2.2, 3.9]] AS Array(Array(Int8))) AS d
SELECT CAST(['1', '2'] AS Array(UInt8)) AS a, CAST([1.7, NULL] AS Array(Nullable(Int64))) AS b, CAST([300, -1] AS Array(UInt8)) AS c, CAST([1, 0, 2] AS Array(Bool)) AS d, CAST(['2024-01-01'] AS Array(Date)) AS e, CAST([] AS Array(Int64)) AS f
SELECT position(x, 'c', 2) AS a, position('abc', x, 2) AS b, position(x, '', 2) AS c, position('abc', 'c', y) AS d, positionUTF8('abc', '', y) AS e FROM (SELECT materialize(CAST(NULL AS Nullable(String))) AS x, materialize(CAST(NULL AS Nullable(UInt8))) AS y)
