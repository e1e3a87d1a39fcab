# SPDX-License-Identifier: Apache-2.0
# Prints TEST=FOLDER for each folder of tests/data that a unit test names in a string, itself or in
# a header of tests/unit. Input: lines FILE:"NAMED, from grep.
BEGIN { FS = ":\"" }
{ named[$1] = named[$1] " " $2 }
function folders(file,    names, i, n, all) {
	n = split(named[file], names, " ")
	for (i = 1; i <= n; i++)
		all = all " " (names[i] ~ /\.h$/ ? folders(names[i]) : names[i])
	return all
}
END {
	for (file in named) {
		n = file ~ /\.c$/ ? split(folders(file), all, " ") : 0
		for (i = 1; i <= n; i++)
			print substr(file, 7, length(file) - 8) "=" all[i]
	}
}
