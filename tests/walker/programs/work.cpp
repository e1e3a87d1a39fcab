// SPDX-License-Identifier: Apache-2.0
// Exceptions through frames with destructors, virtual calls, std::function, containers.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static int destroyed;

struct guard {
	std::string text;
	~guard() { destroyed += (int)text.size(); }
};

struct shape {
	virtual double area(int depth) const = 0;
	virtual ~shape() = default;
};

struct square : shape {
	double side;
	explicit square(double s) : side(s) {}
	double area(int depth) const override
	{
		return depth ? area(depth - 1) + side : side * side;
	}
};

static int thrower(int depth)
{
	guard g{ std::string(20 + (size_t)depth, 'x') };

	if (!depth)
		throw std::runtime_error("the end");
	try {
		return thrower(depth - 1) + 1;
	} catch (const std::logic_error &) {
		return 0;
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 1 << 30;
	double sum = 0;

	for (int round = 0; round < rounds; round++) {
		std::map<int, std::string> m;
		std::vector<int> v;
		std::function<int(int)> f = [&](int n) { return n < 2 ? n : f(n - 1) + f(n - 2); };

		for (int i = 0; i < 60; i++) {
			m[i * 7919 % 1009] = std::to_string(i);
			v.push_back(i * 7919 % 1009);
		}
		std::sort(v.begin(), v.end(), [](int a, int b) { return a > b; });
		try {
			thrower(6);
		} catch (const std::exception &e) {
			sum += e.what()[0];
		}
		square s(2);
		const shape &any = s;
		std::ostringstream o;
		o << any.area(5) << ' ' << f(9) << ' ' << m.size();
		sum += (double)o.str().size() + v[3];
	}
	std::cout << sum << ' ' << destroyed << '\n';
}
