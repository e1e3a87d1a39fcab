WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000)
SELECT i % 7, count(*), max(printf('%d %s', i, upper(hex(i)))) FROM n
WHERE i * 7919 % 1009 > 5 AND (i || 'x') LIKE '%7%' GROUP BY 1 ORDER BY 3;
